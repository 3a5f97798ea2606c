# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Single calls, and the load generators: wrk for REST, h2load for gRPC, tools/OpenLoop.java for REST at a fixed rate, tools/Streams.java for streams."""

import http.client
import json
import math
import re
import shutil
import subprocess

from .places import HERE, Unavailable, last_line

UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4, "h": 3.6e6}


class Outcome:
    """What a load saw: requests with a good answer, others, seconds, latencies in ms, and all requests sent, those of a warm-up too."""

    def __init__(self, requests, failed, seconds, p50, p99, sent=None):
        self.requests, self.failed, self.seconds, self.p50, self.p99 = requests, failed, seconds, p50, p99
        self.sent = sent or requests + failed


def needed(program, package):
    if shutil.which(program) is None:
        raise Unavailable(f"{program} is not on the path (Debian's package {package})")


def run(command, seconds):
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=seconds + 60)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{command[0]} did not end within {seconds + 60:.0f} s") from None
    return done.stdout + done.stderr


def call(port, request):
    """One REST call: the answer's values. Raises ValueError for another status than 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", request.path, request.body, request.headers)
        response = connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise ValueError(f"HTTP {response.status}: {body[:200].decode(errors='replace')}")
        return request.decode(body, {name.lower(): value for name, value in response.getheaders()})
    except http.client.HTTPException as e:
        raise ValueError(f"not HTTP: {e!r}") from e
    finally:
        connection.close()


def call_grpc(environment, port, request, scratch):
    """One gRPC call, by the grpcio of an environment."""
    body = scratch / "call.grpc"
    body.write_bytes(request.body[5:])
    command = [environment.program("python"), HERE / "tools/grpc_call.py", str(port), request.path, body]
    try:
        done = subprocess.run(command, capture_output=True, timeout=60)
    except subprocess.TimeoutExpired:
        raise ValueError("gRPC: no answer within 60 s") from None
    if done.returncode != 0:
        raise ValueError(f"gRPC: {last_line(done.stderr.decode(errors='replace'))}")
    return request.decode(done.stdout, {})


def wrk(port, request, connections, seconds, scratch):
    """Saturation by a fixed number of connections, each with one request in flight."""
    body, script = scratch / "wrk.body", scratch / "wrk.lua"
    body.write_bytes(request.body)
    lines = [f"local f = io.open('{body}', 'rb'); wrk.body = f:read('*a'); f:close()", "wrk.method = 'POST'"]
    lines += [f"wrk.headers['{name}'] = '{value}'" for name, value in request.headers.items()]
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = ["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout", "20s", "--latency", "-s", script]
    text = run(command + [f"http://127.0.0.1:{port}{request.path}"], seconds)
    done = re.search(r"^\s*(\d+) requests in ([0-9.]+)(ms|s|m)", text, re.M)
    if not done:
        raise Unavailable(f"wrk: {last_line(text)}")
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    broken = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    bad = int(refused.group(1)) if refused else 0
    failed = bad + (sum(map(int, broken.groups())) if broken else 0)

    def percentile(p):
        found = re.search(rf"^\s+{p}%\s+([0-9.]+)(us|ms|s|m|h)\s*$", text, re.M)
        return float(found.group(1)) * UNITS[found.group(2)] if found else math.nan

    return Outcome(int(done.group(1)) - bad, failed, float(done.group(2)) * UNITS[done.group(3)] / 1e3, percentile(50), percentile(99))


def h2load(port, request, connections, streams, seconds, scratch):
    """Saturation over HTTP/2: connections with a number of streams in flight each. A gRPC error counts as a failure."""
    needed("h2load", "nghttp2-client")
    body, log = scratch / "h2load.body", scratch / "h2load.log"
    body.write_bytes(request.body)
    log.unlink(missing_ok=True)
    seconds = max(1, round(seconds))
    command = ["h2load", "-t1", f"-c{connections}", f"-m{streams}", f"-D{seconds}", "-w24", "-W26", "-d", body, f"--log-file={log}"]
    for name, value in request.headers.items():
        command += ["-H", f"{name}: {value}"]
    text = run(command + [f"http://127.0.0.1:{port}{request.path}"], seconds)
    done = re.search(r"requests: \d+ total, \d+ started, \d+ done, (\d+) succeeded, (\d+) failed, (\d+) errored", text)
    if not done:
        raise Unavailable(f"h2load: {last_line(text)}")
    # Each line: the start in us, the status, the duration in us.
    micros = sorted(int(line.rsplit("\t", 1)[1]) for line in log.read_text(encoding="ascii").splitlines() if "\t" in line)
    log.unlink()
    good, *bad = map(int, done.groups())
    return Outcome(good, sum(bad), seconds, at(micros, 50) / 1e3, at(micros, 99) / 1e3)


def streams(java, port, request, connections, warmup, seconds, events, scratch):
    """Saturation by connections that read a stream of events each, and then the next. Counts events; latencies are those of the first of each stream."""
    path = scratch / "stream.request"
    write(request, port, path)
    command = [java, "-XX:+UseSerialGC", "-Xmx256m", HERE / "tools/Streams.java", port, path, connections, warmup, seconds, events]
    found = printed("Streams", run(command, warmup + seconds))
    return Outcome(found["events"], found["failed"], found["seconds"], found["p50"], found["p99"], found["sent"])


def write(request, port, path):
    """A file with the bytes of a request of HTTP/1.1."""
    head = [f"POST {request.path} HTTP/1.1", f"Host: 127.0.0.1:{port}", f"Content-Length: {len(request.body)}"]
    head += [f"{name}: {value}" for name, value in request.headers.items()]
    path.write_bytes("\r\n".join(head + ["", ""]).encode() + request.body)


def printed(program, text):
    """The JSON object in the last line of a program's output."""
    line = text.strip().splitlines()[-1] if text.strip() else ""
    if not line.startswith("{"):
        raise Unavailable(f"{program}: {last_line(text)}")
    return json.loads(line)


def at(ordered, percent):
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] if ordered else math.nan


def open_loop(java, port, request, rate, warmup, seconds, seed, scratch):
    """REST requests at random times with a mean rate; latencies count from the times at which they were due."""
    path = scratch / "open.request"
    write(request, port, path)
    # Each connection has a thread. When all of them wait for a response, further requests are late, which their latencies include.
    command = [java, "-XX:+UseSerialGC", "-Xmx256m", HERE / "tools/OpenLoop.java", port, path, rate, warmup, seconds, 64, seed]
    found = printed("OpenLoop", run(command, warmup + seconds))
    return Outcome(found["requests"] - found["failed"], found["failed"], seconds, found["p50"], found["p99"], found["sent"])
