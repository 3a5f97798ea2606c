# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
Uses what build/release.sh has made as a new user would: each file in a clean folder, with an environment of its own.

    python3 testing/artefacts/check.py target/release [distribution] [aarch64] [image] [image-tensorflow] [image-all] [wheel] [debian] [maven] [newcomer]

Without names of parts all of them are checked; the image is checked together with the distribution, and the newcomer's table of docs/INSTALL.md
together with debian and maven, which run some of its rows. Prints what was checked and what was measured, and SKIPPED with a reason for what this machine cannot run.
"""

import concurrent.futures
import glob
import gzip
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import aarch64
import consumers
import container
import debian
import images
import newcomer
import wheel

PARTS = ("distribution", "aarch64", "image", "image-tensorflow", "image-all", "wheel", "debian", "maven", "newcomer")

# Bytes: what users have to fetch, and what a node has to hold.
MOST_ARCHIVE = 120e6
MOST_IMAGE = 200e6
REQUEST = {
    "id": "1",
    "inputs": [{"name": f"INPUT{i}", "shape": [1, 16], "datatype": "INT32", "data": list(range(16))} for i in (0, 1)],
}
problems = []


def check(holds, what):
    print(("ok      " if holds else "FAILED  ") + what, flush=True)
    if not holds:
        problems.append(what)


def skip(what):
    print("SKIPPED " + what, flush=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def wait_ready(port, alive, seconds=90):
    """Returns the seconds until the server is ready."""
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        if not alive():
            return None
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=5):
                return time.monotonic() - begun
        except (urllib.error.URLError, OSError):
            time.sleep(0.01)
    return None


def answers(port, model="simple"):
    output = post(f"http://127.0.0.1:{port}/v2/models/{model}/infer", REQUEST)["outputs"]
    return output[0]["data"] == [2 * i for i in range(16)] and output[1]["data"] == [0] * 16


class Server:
    """A server started by the launcher of an unpacked distribution."""

    def __init__(self, home, models, env, *more):
        self.port = free_port()
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [os.path.join(home, "bin/nereid"), "serve", models, "--port", str(self.port), *more],
            env=env, stdout=self.log, stderr=self.log,
        )  # fmt: skip
        self.ready = wait_ready(self.port, lambda: self.process.poll() is None)

    def output(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


def unpack(archive, folder):
    os.makedirs(folder)
    subprocess.run(["tar", "-xzf", archive, "-C", folder], check=True)
    [home] = glob.glob(os.path.join(folder, "*"))
    return home


def tools(folder):
    """A PATH with what the launcher's script uses, and no Java."""
    os.makedirs(folder)
    for name in ("sh", "sed", "dirname", "readlink", "getconf", "head", "cksum", "ls", "tr", "mkdir", "rm", "mv", "base64", "cat"):
        found = shutil.which(name)
        if found:
            os.symlink(found, os.path.join(folder, name))
    return folder


def distribution(release, work):
    [packed] = glob.glob(os.path.join(release, "nereid-*-linux-x64.tar.gz"))
    size = os.path.getsize(packed)
    check(size <= MOST_ARCHIVE, f"{os.path.basename(packed)}: {size / 1e6:.1f} MB, at most {MOST_ARCHIVE / 1e6:.0f}")
    home = unpack(packed, os.path.join(work, "linux-x64"))
    env = {"PATH": tools(os.path.join(work, "tools")), "HOME": os.path.join(work, "absent")}

    natives = [name for _, _, names in os.walk(home) for name in names if re.search(r"\.(dylib|dll|jnilib)$", name)]
    check(not natives, "no native libraries of other platforms as files")
    for jar in glob.glob(os.path.join(home, "lib/*.jar")):
        listed = subprocess.run([sys.executable, "-m", "zipfile", "-l", jar], stdout=subprocess.PIPE, text=True, check=True).stdout
        if re.search(r"\.(so|dylib|dll|jnilib)\s", listed):
            check(False, f"{os.path.basename(jar)} has native libraries")
    with open(os.path.join(home, "README.md"), encoding="utf-8") as readme:
        text = readme.read()
    named = set(re.findall(r"`((?:bin|lib|docs|examples|share)(?:/[\w./-]+)?|[\w.-]+\.(?:json|txt|cmd))`", text)) | {"NOTICE"}
    missing = [n for n in named if not os.path.exists(os.path.join(home, n)) and not os.path.exists(os.path.join(home, "bin", n))]
    check(len(named) > 5 and not missing, f"the README's {len(named)} files are there {missing or ''}")

    version = subprocess.run([os.path.join(home, "bin/nereid"), "version"], env=env, stdout=subprocess.PIPE, text=True, check=True).stdout
    with open(os.path.join(home, "runtime/release"), encoding="utf-8") as file:
        java = re.search(r'JAVA_VERSION="(.*)"', file.read()).group(1)
    check(f"java {java}" in version, f"without Java on the PATH it runs on the runtime inside, {java}")
    shared = subprocess.run(
        [os.path.join(home, "bin/nereid"), "version"],
        env={**env, "NEREID_JAVA_OPTS": "-Xlog:class+load:stdout"}, stdout=subprocess.PIPE, text=True, check=True,
    ).stdout  # fmt: skip
    loaded = re.search(r"io\.nereid\.app\.Main source: (.*)", shared)
    check(loaded is not None and "shared objects file" in loaded.group(1), f"its classes come from the archive: {loaded and loaded.group(1)}")

    times = []
    for _ in range(3):
        server = Server(home, os.path.join(home, "examples/models"), env)
        if server.ready is None:
            check(False, f"the server did not start: {server.output()[-2000:]}")
            return home, None
        right = answers(server.port)
        times.append(server.ready)
        status = server.stop()
    check(right, f"it answers; ready with seven models after {min(times):.2f} s")
    check(status == 0, f"SIGTERM ends it with 0 ({status})")
    check(not os.path.exists(env["HOME"]), "it needs no home folder, and makes none")
    infer(home, env)

    [bare] = glob.glob(os.path.join(release, "nereid-*-linux-x64-no-runtime.tar.gz"))
    other = unpack(bare, os.path.join(work, "no-runtime"))
    jre = os.path.join(home, "runtime")
    server = Server(other, os.path.join(other, "examples/models"), {**env, "JAVA_HOME": jre, "XDG_CACHE_HOME": os.path.join(work, "cache")})
    check(server.ready is not None and answers(server.port), f"{os.path.basename(bare)} serves with a JRE, which has no javac")
    server.stop()
    refused = subprocess.run([os.path.join(other, "bin/nereid"), "version"], env={**env, "NEREID_JAVA_HOME": "/nowhere"},
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # fmt: skip
    check(refused.returncode == 1 and "NEREID_JAVA_HOME is /nowhere" in refused.stdout, "a wrong NEREID_JAVA_HOME is named")

    plain = [p for p in glob.glob(os.path.join(release, "nereid-*.tar.gz")) if "linux" not in p and not p.endswith("-maven.tar.gz")]
    check(len(plain) == 1, f"one archive for all platforms: {plain}")
    third = unpack(plain[0], os.path.join(work, "plain"))
    server = Server(third, os.path.join(third, "examples/models"), {**env, "JAVA_HOME": jre, "NEREID_CDS": "off"})
    check(server.ready is not None and answers(server.port), f"{os.path.basename(plain[0])} serves")
    server.stop()
    configuration = os.path.join(work, "nereid.yaml")
    port = free_port()
    with open(configuration, "w", encoding="utf-8") as file:
        file.write(f"models: {home}/examples/models\nport: {port}\nmodel-control-mode: explicit\nload-model: [simple]\n")
    process = subprocess.Popen([os.path.join(home, "bin/nereid"), "serve", "--config", configuration], env=env,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    check(wait_ready(port, lambda: process.poll() is None) is not None and answers(port), "it serves with a configuration file")
    process.terminate()
    process.wait(timeout=60)
    with open(configuration, "a", encoding="utf-8") as file:
        file.write("drain-time: 5s\n")
    wrong = subprocess.run([os.path.join(home, "bin/nereid"), "serve", "--config", configuration], env=env,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # fmt: skip
    check(wrong.returncode == 2 and f"{configuration}:5:1: there is no option 'drain-time'" in wrong.stdout
          and "drain-timeout" in wrong.stdout, f"a wrong key has its place: {wrong.stdout.strip()[:200]}")  # fmt: skip
    with open(os.path.join(home, "share/nereid.schema.json"), encoding="utf-8") as file:
        check(json.load(file)["properties"]["port"]["type"] == "integer", "the schema of the configuration file")
    page = subprocess.run(["man", "--warnings", "-l", os.path.join(home, "share/man/man1/nereid.1")], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) if shutil.which("man") else None  # fmt: skip
    if page is None:
        skip("the manual page: there is no man")
    else:
        check("nereid serve" in page.stdout and not page.stderr, f"the manual page {page.stderr[:300]}")
    completion = os.path.join(home, "share/bash-completion/completions/nereid")
    reply = subprocess.run(
        ["bash", "-c", f'source {completion}; COMP_WORDS=(nereid se); COMP_CWORD=1; _complete_nereid; echo "${{COMPREPLY[@]}}"'],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    check("serve" in reply.stdout.split(), f"bash completes 'nereid se' to {reply.stdout.strip()} {reply.stderr[:300]}")
    return home, min(times)


def infer(home, env):
    server = Server(home, os.path.join(home, "examples/models"), env)
    client = [os.path.join(home, "bin/nereid")]
    url = f"http://127.0.0.1:{server.port}"
    said = subprocess.run([*client, "infer", "iris", "--input", "input=[[5.1,3.5,1.4,0.2]]", "--url", url], env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # fmt: skip
    check(said.returncode == 0 and "INT64[1,1]\n    0" in said.stdout, "the client inside answers")
    health = subprocess.run([*client, "health"], env={**env, "NEREID_PORT": str(server.port)}, stdout=subprocess.PIPE, text=True)
    check((health.returncode, health.stdout) == (0, "ready\n"), "nereid health: 0")
    server.stop()
    health = subprocess.run([*client, "health", "--url", url], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    check(health.returncode == 1 and "not ready" in health.stderr, f"nereid health without a server: {health.returncode}")


def image(release, work, home, outside):
    [packed] = glob.glob(os.path.join(release, "nereid-*-image-amd64.tar"))
    made = container.Image(packed, os.path.join(work, "image"))
    images.check_bill(release, packed, made, check)
    size = made.size()
    check(size <= MOST_IMAGE, f"{os.path.basename(packed)}: {size / 1e6:.1f} MB unpacked, at most {MOST_IMAGE / 1e6:.0f}")
    check(made.platform == {"architecture": "amd64", "os": "linux"}, "its platform")
    shells = [n for n in ("bin/sh", "usr/bin/sh", "bin/bash", "usr/bin/perl") if os.path.lexists(os.path.join(made.root, n))]
    check(not shells, f"no shell {shells or ''}")
    config = made.config["config"]
    check(config["User"] == "65532:65532" and config["StopSignal"] == "SIGTERM", "its user is not root; SIGTERM stops it")
    if shutil.which("runc") is None or os.getuid() != 0:
        skip("the image was not run: that takes runc and root")
        return
    bundles = os.path.join(work, "bundles")
    os.makedirs(bundles)
    models = os.path.join(home, "examples/models")
    times = []
    for limits in ({}, {}, {"memory": 640 << 20, "cpus": 1.0}):
        port = free_port()
        env = {"NEREID_PORT": port, "NEREID_JAVA_OPTS": "-Xlog:gc+init"}
        with container.Container(made, bundles, env=env, mounts={models: "/models"}, **limits) as running:
            ready = wait_ready(port, lambda: running.process.poll() is None)
            if ready is None:
                check(False, f"the container did not start: {running.output()[-2000:]}")
                return
            times.append(ready)
            check(answers(port), f"the container answers {limits}, ready after {ready:.2f} s")
            status, said = running.run("nereid", "health")
            said = said.strip().rpartition("\n")[2]
            check((status, said) == (0, "ready"), f"its health check: {status} {said[:200]}")
            if limits:
                output = running.output()
                check("Memory: 640M" in output, "the JVM sees the limit of memory")
                check(re.search(r"CPUs: \d+ total, 1 available", output) is not None, "the JVM sees the limit of CPUs")
                pid = json.loads(subprocess.run(["runc", "state", running.name], stdout=subprocess.PIPE, check=True).stdout)["pid"]
                with open(f"/proc/{pid}/status", encoding="utf-8") as file:
                    status = file.read()
                check("Uid:\t65532\t65532" in status, "the process is of the user 65532")
                check("NoNewPrivs:\t1" in status, "it takes no new privileges")
            drained = drains(port, running)
            check(drained == (True, 0), f"SIGTERM: the request that runs is answered, the status is 0 {drained}")
    if outside is not None:
        # A figure for the reader; only what no noise of the machine explains is a failure.
        check(min(times) <= outside * 2 + 0.2, f"ready after {min(times):.2f} s; outside {outside:.2f} s")
    with container.Container(made, bundles, arguments=["serve", "--no-such-option"]) as running:
        check(running.process.wait(timeout=60) == 2 and "no-such-option" in running.output(), "a wrong option ends with 2 and is named")
    with container.Container(made, bundles, arguments=["version"], env={"NEREID_CDS": "off"}) as running:
        check(running.process.wait(timeout=60) == 0 and "nereid " in running.output(), "other commands run")
    with container.Container(made, bundles, arguments=["operator", "manifests", "--image", "a/b:c"]) as running:
        check(running.process.wait(timeout=60) == 0 and "kind: Deployment" in running.output(), "the operator's manifests")


def drains(port, running):
    """Sends a request of which the end comes after SIGTERM. Returns whether it was answered, and the exit status."""
    body = json.dumps(REQUEST).encode()
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        head = f"POST /v2/models/simple/infer HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        connection.sendall(head + body[:-1])
        time.sleep(0.3)
        subprocess.run(["runc", "kill", running.name, "TERM"], check=True)
        time.sleep(0.5)
        connection.sendall(body[-1:])
        answer = b""
        while b"OUTPUT1" not in answer:
            more = connection.recv(65536)
            if not more:
                break
            answer += more
    return b" 200 OK" in answer and b"OUTPUT1" in answer, running.process.wait(timeout=60)


def sums(release, parts):
    with open(os.path.join(release, "SHA256SUMS"), encoding="ascii") as file:
        lines = [line.split() for line in file]
    for digest, name in lines:
        with open(os.path.join(release, name), "rb") as contents:
            check(hashlib.file_digest(contents, "sha256").hexdigest() == digest if hasattr(hashlib, "file_digest")
                  else hashlib.sha256(contents.read()).hexdigest() == digest, f"the checksum of {name}")  # fmt: skip
    there = {n for n in os.listdir(release) if not n.endswith(".asc")} - {"SHA256SUMS", "maven"}
    check({name for _, name in lines} == there, "every file has a checksum")
    if "distribution" in parts:
        with open(os.path.join(release, "sbom.cdx.json"), encoding="utf-8") as file:
            check(len(json.load(file)["components"]) > 50, "the bill of materials lists the libraries")
    for name in there:
        if name.endswith(".gz"):
            with gzip.open(os.path.join(release, name)) as file:
                check(len(file.read(512)) == 512, f"{name} is whole at its beginning")


def others(release, work, root, shell, parts):
    """Checks the parts whose times are not compared, several at once, the longest first."""
    tasks = {
        "maven": lambda: consumers.repository(release, work, check, skip),
        "aarch64": lambda: aarch64.check_aarch64(release, work, root, unpack, check, skip, wait_ready, free_port),
        "wheel": lambda: wheel.check_wheel(release, work, shell, root, check, skip, wait_ready, free_port),
        "debian": lambda: debian.check_debian(release, work, shell, root, check, skip, answers, free_port),
    }

    def timed(part):
        begun = time.monotonic()
        tasks[part]()
        print(f"        {part} took {time.monotonic() - begun:.0f} s", flush=True)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for task in [pool.submit(timed, part) for part in tasks if part in parts]:
            task.result()


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    release = sys.argv[1]
    parts = set(sys.argv[2:]) or set(PARTS)
    if "newcomer" in parts:
        parts |= {"debian", "maven"}
    if parts - set(PARTS):
        sys.exit(f"check: there is no part {', '.join(sorted(parts - set(PARTS)))}; the parts are {', '.join(PARTS)}")
    with tempfile.TemporaryDirectory(prefix="nereid-artefacts-") as work:
        # The user of a container has to read what is mounted.
        os.chmod(work, 0o755)
        sums(release, parts)
        if "distribution" in parts or "image" in parts:
            home, outside = distribution(release, work)
            if "image" in parts:
                image(release, work, home, outside)
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        for variant in images.PLUGINS:
            if "image-" + variant in parts:
                images.check_variant(release, work, root, variant, check, skip, wait_ready, free_port, post)
        shell = tools(os.path.join(work, "shell"))
        others(release, work, root, shell, parts)
        if "newcomer" in parts:
            begun = time.monotonic()
            newcomer.check_newcomer(release, work, shell, check)
            print(f"        the newcomer's table took {time.monotonic() - begun:.0f} s more", flush=True)
    if problems:
        sys.exit(f"{len(problems)} of the checks failed")


if __name__ == "__main__":
    main()
