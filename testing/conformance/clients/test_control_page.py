# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""docs/KSERVE.md, command by command: every command works when copied from the page, and prints the page's output."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import pytest

pytest.importorskip("yaml")

from control_server import ControlServer
from server import EXAMPLES, ROOT, program

PAGE = ROOT / "docs/KSERVE.md"
COMMANDS = ("./nereid", "curl", "mkdir", "cp", "python", "kubectl", "sed")
PATIENCE = 120


def blocks():
    """(heading, language, lines) of every fenced block."""
    heading, language, lines = "", None, []
    for line in PAGE.read_text().splitlines():
        if language is None and line.startswith("#"):
            heading = line.lstrip("# ")
        elif language is None and line.startswith("```"):
            language, lines = line[3:], []
        elif language is not None and line == "```":
            yield heading, language, lines
            language = None
        elif language is not None:
            lines.append(line)


def steps(lines, commands=COMMANDS):
    """Splits a shell block into (command, expected lines or None); empty for one that begins with no command."""
    if any(line.startswith("$ ") for line in lines):
        found = []
        for line in lines:
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
        return found
    if lines[0].startswith(commands):
        # line by line, except for lines inside quotes
        found, pending = [], ""
        for line in lines:
            pending = f"{pending}\n{line}" if pending else line
            if pending.count('"') % 2 == 0 and pending.count("'") % 2 == 0:
                # some lines have a comment after the command
                found.append((re.split(r" {6,}", pending)[0], None))
                pending = ""
        assert not pending, lines
        return found
    return []


def pattern(line):
    """Returns the pattern of a line: times, ages, pids, ports and last digits differ in each run."""
    kinds = [
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", r"\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z"),
        (r"(?<=process )\d+", r"\\d+"),
        (r"(?<=port )\d+", r"\\d+"),
        (r"(?<=http_port )\d+", r"\\d+"),
        (r"(?<=127\.0\.0\.1:)\d+", r"\\d+"),
        (r"\b(\d+m)?\d+s(?=\s|$)", r"(\\d+m)?\\d+s"),
        (r"\d+\.\d{4,}(E-?\d+)?", r"[-\\d.E]+"),
        ("…", ".*"),
        (r"\s+", r"\\s+"),
    ]
    whole = re.compile("|".join(f"(?P<k{i}>{k})" for i, (k, _) in enumerate(kinds)))
    out, at = "", 0
    for found in whole.finditer(line.strip()):
        out += re.escape(line.strip()[at : found.start()])
        out += kinds[int(found.lastgroup[1:])][1].replace("\\\\", "\\")
        at = found.end()
    return out + re.escape(line.strip()[at:])


def prints(expected, actual):
    """Returns the expected lines that are missing, in order; None when none is."""
    left = [line.strip() for line in actual.splitlines()]
    for line in expected:
        if line.strip() in ("", "…"):
            continue
        wanted = re.compile(pattern(line))
        while left and not wanted.fullmatch(left[0]):
            left.pop(0)
        if not left:
            return line
        left.pop(0)
    return None


class Reader:
    """A user who follows the page in a terminal, with a directory of their own on a shared machine."""

    def __init__(self, folder):
        self.folder = folder
        self.models = folder / "tmp-models"
        home = folder / "home"
        home.mkdir()
        (folder / "bin").mkdir()
        for name in ("python", "python3"):
            (folder / "bin" / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
            (folder / "bin" / name).chmod(0o755)
        (folder / "nereid").write_text(f'#!/bin/sh\nexec "{program()}" "$@"\n')
        (folder / "nereid").chmod(0o755)
        shutil.copytree(ROOT / "examples/control", folder / "examples/control", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(ROOT / "examples/requests", folder / "examples/requests")
        shutil.copytree(EXAMPLES / "iris", folder / "examples/models/iris")
        for file in (folder / "examples/control").iterdir():
            file.write_text(self.here(file.read_text()))
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("NEREID", "XDG"))},
            "HOME": str(home), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "KUBECONFIG": "/dev/null"}
        self.server = None

    def here(self, text):
        text = text.replace("/tmp/models", str(self.models))
        if getattr(self, "server", None):
            text = re.sub(r":8080(?!\d)", f":{self.server.port}", text)
            text = re.sub(r":8090(?!\d)", ":" + self.server.control_url.rsplit(":", 1)[1], text)
        return text

    def run(self, command):
        done = subprocess.run(
            ["bash", "-c", "set -o pipefail\n" + self.here(command)], cwd=self.folder, env=self.environment,
            capture_output=True, text=True, timeout=PATIENCE)
        return done.returncode, done.stdout + done.stderr

    def follow(self, command, expected):
        """Runs a command; a read-only command is repeated until it prints the expected lines."""
        looks = re.match(r"(\./nereid (get|logs|describe)|curl) ", command)
        end = time.monotonic() + PATIENCE
        while True:
            code, said = self.run(command)
            missing = None if expected is None else prints([self.here(x) for x in expected], said)
            refused = expected is None and command.startswith("curl") and '"error"' in said
            failed = code != (1 if expected and expected[0].startswith("nereid: ") else 0)
            if not failed and not refused and missing is None:
                return
            if not looks or time.monotonic() > end:
                raise AssertionError(f"$ {command}\n(exit code {code})\n{said}\nThe page says:\n" + "\n".join(expected or []))
            time.sleep(0.5)


BAD = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: bad}
spec:
  predictor:
    minReplica: 1
    model:
      modelFormat: {name: sklearn}
      storageUri: s4://models/iris
"""

SELECTING = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: selecting}
spec:
  predictor:
    nodeSelector: {disk: fast}
    model:
      modelFormat: {name: sklearn}
      storageUri: file:///nowhere
"""


def test_every_command_of_the_page_does_what_the_page_says(tmp_path):
    pytest.importorskip("sklearn", reason="THE PAGE docs/KSERVE.md IS NOT TESTED: there is no scikit-learn, which it begins with")
    reader = Reader(tmp_path)
    kubectl = shutil.which("kubectl")
    done = 0
    try:
        for heading, language, lines in blocks():
            if language == "yaml":
                file = (ROOT / "examples/control/iris.yaml").read_text()
                assert [x for x in file.splitlines() if not x.startswith("#")] == lines, "the page shows another file"
            elif language == "python":
                triton = pytest.importorskip("tritonclient.grpc", reason="THE PAGE'S PYTHON IS NOT TESTED: no tritonclient")
                assert triton
                (tmp_path / "asks.py").write_text(reader.here("\n".join(lines)))
                code, said = reader.run("python asks.py")
                assert code == 0 and said.split() == re.search(r"# *(\[\[.*]])$", lines[-1]).group(1).split(), said
            elif lines == ["./nereid serve --control"]:
                serve(reader)
            elif lines[0].startswith("Warning: "):
                (tmp_path / "selecting.yaml").write_text(SELECTING)
                code, said = reader.run("./nereid apply -f selecting.yaml && ./nereid delete -f selecting.yaml")
                assert code == 0 and prints(lines, said) is None, said
            elif heading == "Start":
                assert prints([reader.here(x) for x in lines], "".join(reader.server.lines)) is None, reader.server.lines
            else:
                (tmp_path / "bad.yaml").write_text(BAD)
                todo = steps(lines)
                assert todo, f"what is this? {lines}"
                for command, expected in todo:
                    if command.startswith("kubectl") and not kubectl:
                        print(f"NOT TESTED, FOR THERE IS NO kubectl: {command}")
                        continue
                    reader.follow(command, expected)
                    done += 1
        assert done > 30
        assert reader.run("./nereid get isvc,ig -o name")[1].strip() in ("", "No resources found in default namespace.")
    finally:
        if reader.server:
            reader.server.process.kill()


def serve(reader):
    """Starts the server as the page does, but on free ports and with a separate home directory."""
    saved = {k: os.environ.get(k) for k in ("HOME",)}
    os.environ["HOME"] = reader.environment["HOME"]
    os.environ.pop("NEREID_CONTROL", None)
    try:
        reader.server = ControlServer(None)
    finally:
        for key, value in saved.items():
            os.environ[key] = value
    reader.environment["NEREID_CONTROL"] = reader.server.control_url
    assert (pathlib.Path(reader.environment["HOME"]) / ".local/share/nereid/resources").is_dir(), "where the page says"
