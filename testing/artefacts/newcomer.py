# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
Runs each row of the table of docs/INSTALL.md, as it is written there, in a clean folder with the files of a release, and measures the time from its
first command to its first answer. What other checks run anyway is reported by them (ran) and not run again.

Commands are changed in this only: the port 8080 becomes a free one, VERSION the version of the release. The container engine is runc where no other
one is there, as for the rest of the checks.
"""

import glob
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import container

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DOCUMENT = os.path.join(ROOT, "docs/INSTALL.md")
HEAD = "| you are used to | commands | first answer |"
SECONDS = 60

# Row: the commands that were run, the seconds until the answer, and the answer; the answer is None where it was skipped, with the reason first.
reported = {}


class Row:
    def __init__(self, line):
        habit, commands, answer = (cell.strip() for cell in line.strip().strip("|").split(" | "))
        self.habit = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", habit)
        self.commands = re.findall(r"`([^`]+)`", commands)
        # Words without a code span are a matter of the check that runs the row.
        self.answer = (re.findall(r"`([^`]+)`", answer) or [None])[0]


class Skipped(Exception):
    pass


class Failed(Exception):
    pass


def document():
    """The question of the document, and the rows of its table."""
    with open(DOCUMENT, encoding="utf-8") as file:
        text = file.read()
    part = text[text.index("## Pick your habit") :]
    question = re.search(r"```sh\n(curl .*)\n```", part).group(1)
    lines = part[part.index(HEAD) :].split("\n\n")[0].splitlines()[2:]
    return question, [Row(line) for line in lines]


def ran(habit, commands, seconds, answer):
    """Another check has run a row: habit is the beginning of its first cell."""
    reported[habit] = (commands, seconds, answer)


def skipped(habit, reason):
    reported[habit] = (reason, None, None)


def ask(port):
    """The answer to the question of the document."""
    return shell(document()[0].replace("8080", str(port)), os.environ, ROOT)[1]


def shell(command, env, folder):
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=300
    )
    return done.returncode, done.stdout


class Machine:
    """A folder with the files of the release and two models, and a PATH."""

    def __init__(self, release, work, name, path):
        self.folder = os.path.join(work, "newcomer-" + name)
        os.makedirs(os.path.join(self.folder, "models"))
        for file in os.listdir(release):
            os.symlink(os.path.join(os.path.abspath(release), file), os.path.join(self.folder, file))
        shutil.copytree(os.path.join(ROOT, "examples/models/iris"), os.path.join(self.folder, "models/iris"))
        shutil.copy(os.path.join(ROOT, "examples/models/iris/1/model.onnx"), os.path.join(self.folder, "iris.onnx"))
        self.port = free_port()
        self.env = {"PATH": path, "HOME": os.path.join(self.folder, "home"), "NEREID_PORT": str(self.port)}

    def answered(self, row, question, version):
        """Runs the commands of a row: the last one is a server, which is asked until it answers. Returns seconds and answer."""
        begun = time.monotonic()
        *before, server = (c.replace("VERSION", version) for c in row.commands)
        for command in before:
            status, said = shell(command, self.env, self.folder)
            if status != 0:
                raise Failed(f"{command} ended with {status}: {said[-1000:]}")
        with tempfile.TemporaryFile("w+", encoding="utf-8") as log:
            process = subprocess.Popen(
                ["bash", "-c", "exec " + server], cwd=self.folder, env=self.env, stdout=log, stderr=subprocess.STDOUT
            )
            try:
                return self.poll(process, row, question, begun)
            except Failed as e:
                log.seek(0)
                raise Failed(f"{e} {log.read()[-1000:]}") from e
            finally:
                process.terminate()
                process.wait(timeout=60)

    def poll(self, process, row, question, begun):
        said = ""
        while time.monotonic() - begun < SECONDS:
            if process.poll() is not None:
                raise Failed(f"{row.commands[-1]} ended with {process.returncode}:")
            status, said = shell(question.replace("8080", str(self.port)), os.environ, self.folder)
            if status == 0 and row.answer in said:
                return time.monotonic() - begun, said
            if '"predictions"' in said:
                break
            time.sleep(0.05)
        raise Failed(f"no answer with {row.answer} after {time.monotonic() - begun:.0f} s, but '{said}':")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Rows:
    """The checks of the rows that are run here, by the beginning of their first cell."""

    def __init__(self, release, work, tools):
        self.release = release
        self.work = work
        self.tools = tools
        self.question, self.rows = document()
        [packed] = glob.glob(os.path.join(release, "nereid-*-linux-x64.tar.gz"))
        self.version = re.search(r"nereid-(.*)-linux-x64\.tar\.gz$", packed).group(1)

    def machine(self, name, path=None):
        return Machine(self.release, self.work, name, path or os.environ["PATH"])

    def archive(self, row):
        """Without Java on the PATH; tar finds gzip there."""
        for name in ("tar", "gzip", "bash"):
            link = os.path.join(self.tools, name)
            if not os.path.lexists(link):
                os.symlink(shutil.which(name), link)
        return self.machine("tar", self.tools).answered(row, self.question, self.version)

    def archive_with_java(self, row):
        return self.machine("java").answered(row, self.question, self.version)

    def archive_of_all_systems(self, row):
        return self.machine("all").answered(row, self.question, self.version)

    def python(self, name):
        machine = self.machine(name)
        venv = os.path.join(machine.folder, "venv")
        made = subprocess.run([sys.executable, "-m", "venv", venv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if made.returncode != 0:
            raise Skipped(f"Python has no venv here ({made.stdout.strip()[-150:]})")
        machine.env["PATH"] = os.path.join(venv, "bin") + ":" + machine.env["PATH"]
        return machine

    def pip(self, row):
        return self.python("pip").answered(row, self.question, self.version)

    def notebook(self, row):
        machine = self.python("notebook")
        begun = time.monotonic()
        for command in row.commands:
            status, said = shell(command, machine.env, machine.folder)
            if status != 0:
                raise Failed(f"{command} ended with {status}: {said[-1000:]}")
        if row.answer not in said:
            raise Failed(f"{row.answer} was expected, not {said[-1000:]}")
        return time.monotonic() - begun, said

    def image(self, row):
        engine = next((e for e in ("docker", "podman") if shutil.which(e) and shell(e + " info", os.environ, ROOT)[0] == 0), None)
        if engine is None:
            return self.with_runc(row)
        machine = self.machine("image")
        row.commands = [c.replace("docker", engine, 1).replace("8080:8080", f"{machine.port}:8080") for c in row.commands]
        return machine.answered(row, self.question, self.version)

    def with_runc(self, row):
        """What docker would do: unpack the layers, mount the folder, and run the image's command with its user."""
        if shutil.which("runc") is None or os.getuid() != 0:
            raise Skipped("there is neither Docker, podman, nor runc and root")
        machine = self.machine("image")
        expected = ["docker load --input nereid-*-image-amd64.tar", 'docker run --rm -p 8080:8080 -v "$PWD/models:/models:ro" nereid:VERSION']
        if row.commands != expected:
            raise Failed(f"the check runs {expected}")
        [packed] = glob.glob(os.path.join(self.release, "nereid-*-image-amd64.tar"))
        begun = time.monotonic()
        image = container.Image(packed, os.path.join(machine.folder, "image"))
        if f"nereid:{self.version}" not in image.tags:
            raise Failed(f"the image is {image.tags}, not nereid:{self.version}")
        models = {os.path.join(machine.folder, "models"): "/models"}
        with container.Container(image, machine.folder, env={"NEREID_PORT": machine.port}, mounts=models) as running:
            try:
                return machine.poll(running.process, row, self.question, begun)
            except Failed as e:
                raise Failed(f"{e} {running.output()[-1000:]}") from e

    def helm(self, row):
        """The objects, by helm itself; pods that answer take a cluster."""
        binary = subprocess.run([os.path.join(ROOT, "testing/kubernetes/helm.sh"), "binary"], stdout=subprocess.PIPE, text=True, check=False)
        if binary.returncode != 0:
            raise Skipped("helm is not built (testing/kubernetes/helm.sh build)")
        command = row.commands[0].replace("VERSION", self.version)
        if not command.startswith("helm install "):
            raise Failed(f"'{command}' does not begin with 'helm install '")
        command = binary.stdout.strip() + " template " + command[len("helm install ") :].replace(" --create-namespace", "")
        status, said = shell(command, os.environ, ROOT)
        if status != 0 or f"image: registry.example.com/nereid:{self.version}" not in said.replace('"', ""):
            raise Failed(f"{command} ended with {status}: {said[-1000:]}")
        raise Skipped("its objects are rendered; pods that answer take a cluster: testing/kubernetes/end-to-end.sh")

    def checkout(self, row):
        # The build is not measured, as in the other rows. It is made by the JDK that made the classes which are there.
        env = dict(os.environ)
        if "JAVA_HOME" not in env and shutil.which("javac"):
            env["JAVA_HOME"] = os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("javac"))))
        status, said = shell("./nereid version", env, ROOT)
        if status != 0:
            raise Failed(f"./nereid version ended with {status}: {said[-1000:]}")
        machine = self.machine("checkout")
        machine.folder = ROOT
        return machine.answered(row, self.question, self.version)

    def checks(self):
        return {
            "tar, on Linux with nothing else": self.archive,
            "tar, with Java 17 or later on Linux": self.archive_with_java,
            "tar, with Java 17 or later on another system": self.archive_of_all_systems,
            "pip": self.pip,
            "a notebook": self.notebook,
            "docker": self.image,
            "helm: a server": self.helm,
            "helm: the operator": self.helm,
            "a checkout": self.checkout,
        }


def of_row(found, row, what):
    """What belongs to a row, of a table by the beginnings of first cells."""
    matching = [value for habit, value in found.items() if row.habit == habit or row.habit.startswith(habit + ",") or row.habit.startswith(habit + " ")]
    if len(matching) > 1:
        raise Failed(f"{len(matching)} {what} are those of the row '{row.habit}'")
    return matching[0] if matching else None


def report(row):
    """Seconds and answer of a row that another check has run; None when none has."""
    found = of_row(reported, row, "reports")
    if found is None:
        return None
    commands, seconds, answer = found
    if answer is None:
        raise Skipped(commands)
    if commands != row.commands:
        raise Failed(f"the check runs {commands}, the document has {row.commands}")
    if row.answer is not None and row.answer not in answer:
        raise Failed(f"{row.answer} was expected, not {answer[-500:]}")
    return seconds, answer


def check_newcomer(release, work, tools, check):
    rows = Rows(release, work, tools)
    checks = rows.checks()
    lines = []
    for row in rows.rows:
        try:
            result = report(row)
            if result is None:
                run = of_row(checks, row, "checks")
                if run is None:
                    raise Failed("nothing checks it: give it a check in testing/artefacts/newcomer.py")
                result = run(row)
            seconds, answer = result
            lines.append((row.habit, f"{seconds:.1f} s", short(answer)))
            check(seconds < SECONDS, f"newcomer: {row.habit}: an answer after {seconds:.1f} s, within {SECONDS}")
        except Skipped as e:
            lines.append((row.habit, "-", f"SKIPPED {e}"))
            print(f"SKIPPED newcomer: {row.habit}: {e}", flush=True)
        except Failed as e:
            lines.append((row.habit, "-", "FAILED"))
            check(False, f"newcomer: {row.habit}: {e}")
    check(len(lines) >= 12, f"the table of docs/INSTALL.md has {len(lines)} rows")
    for habit, seconds, answer in lines:
        print(f"        {habit[:52]:52} {seconds:>7}  {answer}", flush=True)


def short(answer):
    return re.sub(r"\s+", " ", answer.strip())[:90]
