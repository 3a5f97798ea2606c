#!/usr/bin/env python3
# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""What a server costs that has nothing to do.

    testing/bench/idle.py [--connections N] [--seconds S]

Prints how often its threads wake up, with and without open connections, and the resident memory of an idle connection: of HTTP/1.1 after a request, and of
HTTP/2 after the settings and a ping. It needs Linux, a built distribution (./mvnw -Pquick package) and the right to open so many files.
"""

import argparse
import glob
import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROW = "[" + ",".join(map(str, range(16))) + "]"
BODY = (
    '{"inputs":[{"name":"INPUT0","shape":[1,16],"datatype":"INT32","data":%s},{"name":"INPUT1","shape":[1,16],"datatype":"INT32","data":%s}]}' % (ROW, ROW)
).encode()
REQUEST = b"POST /v2/models/simple/infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
# RFC 9113: the preface, an empty SETTINGS frame, and a PING frame, whose answer has the flag ACK.
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]) + bytes([0, 0, 8, 6, 0, 0, 0, 0, 0]) + b"nereid--"
PONG = bytes([0, 0, 8, 6, 1, 0, 0, 0, 0]) + b"nereid--"


def distribution():
    found = os.environ.get("NEREID_DISTRIBUTION") or next(iter(glob.glob(os.path.join(ROOT, "apps/nereid/target/dist/nereid-*"))), None)
    if not found:
        sys.exit("idle.py: there is no distribution (run: ./mvnw -Pquick -DskipTests package)")
    return found


def start(log):
    folder = distribution()
    process = subprocess.Popen(
        [f"{folder}/bin/nereid", "serve", f"{folder}/examples/models", "--model-control-mode", "explicit", "--load-model", "simple", "--port", "0"],
        stdout=log, stderr=subprocess.STDOUT)
    for _ in range(600):
        text = open(log.name, encoding="utf-8").read()
        found = re.search(r"listening on http://127\.0\.0\.1:(\d+)", text)
        if found:
            return process, int(found.group(1))
        if process.poll() is not None:
            sys.exit(f"idle.py: the server did not start:\n{text}")
        time.sleep(0.1)
    sys.exit("idle.py: the server did not become ready in a minute")


def resident(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{pid}/status", encoding="utf-8").read()).group(1))


def settled(pid):
    """Resident kilobytes after a collection and when compilers have given their memory back."""
    subprocess.run(["jcmd", str(pid), "GC.run"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    time.sleep(8)
    return resident(pid)


def switches(pid):
    counts = {}
    for task in glob.glob(f"/proc/{pid}/task/*"):
        name = open(f"{task}/comm", encoding="utf-8").read().strip()
        counts[name] = counts.get(name, 0) + int(re.search(r"voluntary_ctxt_switches:\s+(\d+)", open(f"{task}/status", encoding="utf-8").read()).group(1))
    return counts


def wakes(pid, seconds):
    """Wake-ups a second, of all threads and of event loops."""
    before = switches(pid)
    time.sleep(seconds)
    after = switches(pid)
    rates = {name: (count - before.get(name, 0)) / seconds for name, count in after.items()}
    return sum(rates.values()), sum(rate for name, rate in rates.items() if name.startswith("nereid-io"))


def connect(port, first, until):
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(first)
    answer = b""
    while until not in answer:
        part = connection.recv(65536)
        if not part:
            sys.exit(f"idle.py: the server closed a connection after {answer!r}")
        answer += part
    return connection


def main():
    parser = argparse.ArgumentParser(prog="testing/bench/idle.py", description="What a server costs that has nothing to do.")
    parser.add_argument("--connections", type=int, default=10_000, help="open connections of each protocol (default: 10000)")
    parser.add_argument("--seconds", type=int, default=20, help="for which wake-ups are counted (default: 20)")
    settings = parser.parse_args()
    most = settings.connections + 1000
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < most:
        sys.exit(f"idle.py: {settings.connections} connections need {most} open files (ulimit -Hn, or fewer --connections)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    for name, first, until in (("HTTP/1.1", REQUEST, b'"outputs"'), ("HTTP/2", PREFACE, PONG)):
        with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
            process, port = start(log)
            try:
                pid = process.pid
                # What the first connections load and compile is not a cost of each.
                for _ in range(2000):
                    connect(port, first, until).close()
                before = settled(pid)
                quiet = wakes(pid, settings.seconds)
                held = [connect(port, first, until) for _ in range(settings.connections)]
                after = settled(pid)
                busy = wakes(pid, settings.seconds)
                print(
                    f"{name}: {(after - before) / settings.connections:.2f} kB a connection ({settings.connections} of them; {before} kB before); wake-ups a"
                    f" second: {quiet[0]:.1f} without connections, of them event loops {quiet[1]:.1f}; {busy[0]:.1f} with them, event loops {busy[1]:.1f}",
                    flush=True)
                for connection in held:
                    connection.close()
            finally:
                process.terminate()
                process.wait(30)


if __name__ == "__main__":
    main()
