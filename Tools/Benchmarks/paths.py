#!/usr/bin/env python3
"""Counts the files of the project that one put, cold get, cached hit and query pass.

Runs a debug build under callgrind, once for few of them and once for many: a file that every one
passes has more instructions for each. Called by Tools/bench paths.
"""
import os
import re
import subprocess
import sys
import tempfile

MOST = {"put": 20, "get": 18, "hit": 12, "query": 25}
FEW, MANY = 20, 220


def instructions(program, operation, count):
    """Instructions by file of Sources, lines of functions that were inlined where they stand."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        subprocess.run(
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out, program, operation,
             str(count), os.path.join(folder, "store")],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        names, sums, file, is_call = {}, {}, None, False
        for line in open(out, encoding="utf-8", errors="replace"):
            found = re.match(r"(?:fl|fi|fe)=\((\d+)\)(?: (.*))?$", line)
            if found:
                if found[2] is not None:
                    names[found[1]] = found[2]
                file = names.get(found[1], "")
            elif line.startswith("cfi=") or line.startswith("cfl="):
                found = re.match(r"cf[il]=\((\d+)\)(?: (.*))?$", line)
                if found and found[2] is not None:
                    names[found[1]] = found[2]
            elif line.startswith("calls="):
                is_call = True
            elif re.match(r"[+\-*\d]", line):
                parts = line.split()
                if not is_call and len(parts) > 1 and file:
                    sums[file] = sums.get(file, 0) + int(parts[1])
                is_call = False
        return {
            name[name.index("Sources/"):]: total for name, total in sums.items()
            if "Sources/Tidemark" in name}


def main():
    program, shows = sys.argv[1], "--list" in sys.argv[2:]
    wanted = [name for name in MOST if name in sys.argv[2:]] or list(MOST)
    exceeded = False
    for operation in wanted:
        few, many = (instructions(program, operation, count) for count in (FEW, MANY))
        passed = sorted(
            name for name, total in many.items() if total - few.get(name, 0) >= MANY - FEW)
        exceeded = exceeded or len(passed) > MOST[operation]
        print(f"{operation}: {len(passed)} files, {MOST[operation]} at most")
        if shows:
            for name in passed:
                each = (many[name] - few.get(name, 0)) // (MANY - FEW)
                print(f"  {each:7} instructions  {name}")
    sys.exit(1 if exceeded else 0)


main()
