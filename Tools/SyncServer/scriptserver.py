"""A server that a script starts on a free port of this machine, and calls to it."""
import json
import re
import signal
import subprocess
import sys
import threading


class Server:
    """A server of a process of its own. `lines` is what it says before and after it is ready."""

    def __init__(self, path, *options):
        self.lines = []
        self.process = subprocess.Popen(
            [path, "--port", "0", *options], stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            found = re.search(r"127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found[1])
                # Output that nobody reads would stop the server some day.
                threading.Thread(
                    target=lambda: self.lines.extend(self.process.stderr), daemon=True).start()
                return
            self.lines.append(line)
        sys.exit("the server did not start: " + "".join(self.lines))

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(timeout=30) != 0:
            sys.exit("the server did not end in order")


def call(connection, database, name, **fields):
    """Makes a call as JSON on a connection.

    - Returns: the status, and the answer or else the error's text.
    """
    connection.request(
        "POST", f"/{database}/v1/{name}", json.dumps({"type": name, **fields}),
        {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    return answer.status, json.loads(text) if answer.status == 200 else text[:300]


def put(number, key, value):
    """The change of a batch that has one."""
    return {
        "number": number, "batch": f"{number:016x}",
        "changes": [
            {"seq": number, "op": "put", "key": key, "value": value,
             "commit_time": f"{number << 16:016x}"}]}
