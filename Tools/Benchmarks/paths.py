#!/usr/bin/env python3
"""Counts the files of the project that one put, cold get, cached hit and query pass.

Runs a debug build that counts the calls of each function, once for few of them and once for many:
a file is passed whose functions are called more often by as many as there were more. Called by
Tools/bench paths.
"""
import json
import os
import subprocess
import sys
import tempfile

MOST = {"put": 20, "get": 18, "hit": 12, "query": 25}
FEW, MANY = 20, 220


def tool(name):
    """A tool that comes with Swift."""
    if sys.platform == "darwin":
        return ["xcrun", name]
    swift = os.path.realpath(subprocess.check_output(["which", "swift"], text=True).strip())
    return [os.path.join(os.path.dirname(swift), name)]


def calls(program, operation, count):
    """Calls by file of Sources."""
    with tempfile.TemporaryDirectory() as folder:
        raw, profile = (os.path.join(folder, name) for name in ("raw", "profile"))
        subprocess.run(
            [program, operation, str(count), os.path.join(folder, "store")], check=True,
            env={**os.environ, "LLVM_PROFILE_FILE": raw})
        subprocess.run(tool("llvm-profdata") + ["merge", raw, "-o", profile], check=True)
        text = subprocess.check_output(
            tool("llvm-cov") + ["export", program, "-instr-profile", profile])
        sums = {}
        for function in json.loads(text)["data"][0]["functions"]:
            name = function["filenames"][0]
            if "Sources/Tidemark" in name:
                name = name[name.index("Sources/"):]
                sums[name] = sums.get(name, 0) + function["count"]
        return sums


def main():
    program, shows = sys.argv[1], "--list" in sys.argv[2:]
    wanted = [name for name in MOST if name in sys.argv[2:]] or list(MOST)
    exceeded = False
    for operation in wanted:
        few, many = (calls(program, operation, count) for count in (FEW, MANY))
        more = {name: total - few.get(name, 0) for name, total in many.items()}
        passed = sorted(name for name, total in more.items() if total >= MANY - FEW)
        exceeded = exceeded or len(passed) > MOST[operation]
        print(f"{operation}: {len(passed)} files, {MOST[operation]} at most")
        if shows:
            for name in passed:
                print(f"  {more[name] / (MANY - FEW):8.1f} calls  {name}")
    sys.exit(1 if exceeded else 0)


main()
