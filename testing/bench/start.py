#!/usr/bin/env python3
# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures what the program costs at start and at rest, through its launcher.

    testing/bench/start.py [--runs N] [--idle SECONDS] [--distribution FOLDER] [--java JAVA_HOME]... [PART...]

Parts: commands (nereid version, help and models), serve (start to the first right answer, classes, resident memory), all when absent.
Each line has the median, and the least and the largest of N runs (10); "CPU" is the processor time, which depends less on what else
runs on the machine. Archives of classes are made before, and not counted. --java takes each Java in turn; without it the launcher
chooses. --idle is how long a server rests before its memory is read (10).
"""

import argparse
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

INFER = json.dumps({"inputs": [{"name": f"INPUT{i}", "shape": [1, 16], "datatype": "INT32", "data": [2] * 16} for i in (0, 1)]}).encode()


def shown(values, form="{:.2f}"):
    return f"{form.format(statistics.median(values))} ({form.format(min(values))} to {form.format(max(values))})"


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def answers(port):
    """Whether the server adds two vectors."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            head = f"POST /v2/models/simple/infer HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {len(INFER)}\r\n\r\n"
            connection.sendall(head.encode() + INFER)
            answer = b""
            while more := connection.recv(65536):
                answer += more
    except OSError:
        return False
    body = answer.partition(b"\r\n\r\n")[2]
    return answer.startswith(b"HTTP/1.1 200") and json.loads(body)["outputs"][0]["data"] == [4] * 16


def cpu(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return sum(int(fields[i]) for i in (11, 12, 13, 14)) / os.sysconf("SC_CLK_TCK")


def memory(pid):
    """Resident memory in MB: all, and that of files, which other processes share."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        lines = dict(line.split(":", 1) for line in file if line.startswith("Rss") or line.startswith("VmRSS"))
    return [int(lines[name].split()[0]) / 1000 for name in ("VmRSS", "RssFile")]


class Server:
    """A server with the one model "simple", started through the launcher."""

    def __init__(self, program, environment, models):
        self.port = free_port()
        arguments = ["serve", models, "--port", str(self.port), "--model-control-mode", "explicit", "--load-model", "simple"]
        started = time.monotonic()
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen([program, *arguments], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not answers(self.port):
            if self.process.poll() is not None:
                sys.exit(f"start: the server ended with {self.process.returncode}: {arguments}")
            time.sleep(0.002)
        self.seconds = time.monotonic() - started
        self.cpu = cpu(self.process.pid)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)


def command(program, environment, arguments):
    """Wall-clock and processor seconds of one run."""
    started = time.monotonic()
    # pylint: disable-next=consider-using-with
    process = subprocess.Popen([program, *arguments], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status != 0:
        sys.exit(f"start: nereid {' '.join(arguments)} ended with {status}")
    return time.monotonic() - started, usage.ru_utime + usage.ru_stime


def commands(program, environment, models, runs):
    server = Server(program, environment, models)
    for arguments in (["version"], ["help"], ["models", "--url", f"http://127.0.0.1:{server.port}"]):
        measured = [command(program, environment, arguments) for _ in range(runs)]
        wall, used = zip(*measured)
        print(f"  nereid {arguments[0]:8} {shown(wall)} s; CPU {shown(used)} s", flush=True)
    server.stop()


def classes(program, environment, models, work):
    """The number of classes after the first answer, and how many of them are not from the archive."""
    log = os.path.join(work, "classes.log")
    options = environment.get("NEREID_JAVA_OPTS", "") + f" -Xlog:class+load:file={log}:none:filecount=0"
    Server(program, {**environment, "NEREID_JAVA_OPTS": options}, models).stop()
    with open(log, encoding="utf-8", errors="replace") as file:
        sources = [line.rpartition("source: ")[2] for line in file]
    return len(sources), sum(not source.startswith("shared objects file") for source in sources)


def serve(program, environment, models, runs, idle, work):
    ready, used, resident, mapped = [], [], [], []
    for run in range(runs):
        server = Server(program, environment, models)
        ready.append(server.seconds)
        used.append(server.cpu)
        if run < 3:
            time.sleep(idle)
            everything, files = memory(server.process.pid)
            resident.append(everything)
            mapped.append(files)
        server.stop()
    print(f"  first answer    {shown(ready)} s; CPU {shown(used)} s")
    print(f"  idle memory     {shown(resident, '{:.0f}')} MB, of it files {shown(mapped, '{:.0f}')} MB")
    print("  classes         {}, of them not from an archive {}".format(*classes(program, environment, models, work)), flush=True)


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--idle", type=float, default=10)
    parser.add_argument("--distribution")
    parser.add_argument("--java", action="append")
    parser.add_argument("parts", nargs="*", choices=["commands", "serve", []])
    given = parser.parse_args()
    dist = os.path.join(root, "apps/nereid/target/dist")
    home = given.distribution or os.path.join(dist, next((n for n in sorted(os.listdir(dist)) if n.startswith("nereid-")), ""))
    program = os.path.join(home, "bin/nereid")
    models = os.path.join(home, "examples/models")
    parts = given.parts or ["commands", "serve"]
    with tempfile.TemporaryDirectory(prefix="nereid-start-") as work:
        for java in given.java or [None]:
            environment = {k: v for k, v in os.environ.items() if not k.startswith("NEREID_") or k in ("NEREID_JAVA_OPTS", "NEREID_CDS")}
            environment.setdefault("NEREID_CDS", work)
            if java is not None:
                environment["NEREID_JAVA_HOME"] = java
            if environment["NEREID_CDS"] != "off":
                subprocess.run([program, "cds", "serve"], env=environment, check=True, stderr=subprocess.DEVNULL)
            print(java or "the launcher's Java")
            if "commands" in parts:
                commands(program, environment, models, given.runs)
            if "serve" in parts:
                serve(program, environment, models, given.runs, given.idle, work)


if __name__ == "__main__":
    main()
