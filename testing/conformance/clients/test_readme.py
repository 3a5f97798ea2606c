# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""README.md, command by command: what a new user copies from the page works, and prints what the page shows."""
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import pytest

pytest.importorskip("yaml")
pytest.importorskip("tritonclient.grpc")

from server import EXAMPLES, FIXTURES, ROOT, program, samples
from test_control_page import prints, steps

PAGE = ROOT / "README.md"
PATIENCE = 120
REPOSITORY = """
name: "my_model" backend: "identity" max_batch_size: 8
input { name: "INPUT0" data_type: TYPE_FP32 dims: [ 16 ] } output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 16 ] }
"""
MODEL_LIST = """
model_config_list { config { name: "half_plus_two" base_path: "%s" model_platform: "tensorflow" } }
"""


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


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def taken(ports):
    for port in ports:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return port
    return None


class Reader:
    """A user with a terminal in the project's directory: a home, ports and model directories that nothing else uses."""

    def __init__(self, folder):
        self.folder = folder
        self.models = folder / "models"
        self.ports = {port: free_port() for port in (8080, 8090, 8500, 8501)}
        self.lines = []
        self.server = None
        (folder / "home").mkdir()
        (folder / "bin").mkdir()
        for name in ("python", "python3"):
            (folder / "bin" / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
            (folder / "bin" / name).chmod(0o755)
        (folder / "nereid").write_text(f'#!/bin/sh\nexec "{program()}" "$@"\n')
        (folder / "nereid").chmod(0o755)
        shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("venv", "target", "__pycache__"))
        for file in (folder / "examples/control").iterdir():
            file.write_text(self.here(file.read_text()))
        (self.models / "my_model/1").mkdir(parents=True)
        (self.models / "my_model/config.pbtxt").write_text(REPOSITORY)
        (self.models / "list/half_plus_two/1").mkdir(parents=True)
        shutil.copy(FIXTURES / "half_plus_two.onnx", self.models / "list/half_plus_two/1/model.onnx")
        shutil.copytree(samples()["NEREID_PLUGIN_DIR"], folder / "home/.local/share/nereid/plugins")
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("NEREID", "XDG"))},
            "HOME": str(folder / "home"),
            # Java takes the home directory from the account, not from HOME.
            "XDG_DATA_HOME": str(folder / "home/.local/share"),
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "NEREID_URL": f"http://127.0.0.1:{self.ports[8080]}",
            "NEREID_CONTROL": f"http://127.0.0.1:{self.ports[8090]}",
        }

    def here(self, text):
        text = text.replace("/tmp/models", str(self.folder / "tmp-models"))
        text = re.sub(r"(?<![\w.])/models\b", str(self.models), text)
        for port, mine in self.ports.items():
            text = re.sub(rf"(?<=[:=]){port}(?!\d)", str(mine), text)
        return text

    def serve(self, command):
        """Starts the server of the page in the background, in place of the one before, on free ports."""
        self.stop()
        more = "" if "--port" in command else f" --port {self.ports[8080]}"
        more += f" --control-port {self.ports[8090]}" if "--control" in command else ""
        if "--model_config_file" in command:
            (self.models / "models.config").write_text(MODEL_LIST % (self.models / "list/half_plus_two"))
        self.lines = []
        self.server = subprocess.Popen(
            ["bash", "-c", "exec " + self.here(command) + more],
            cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        threading.Thread(target=self.read, args=(self.server, self.lines), daemon=True).start()
        sign = "control API on" if "--control" in command else "listening on"
        end = time.monotonic() + PATIENCE
        while not any(sign in line for line in self.lines):
            assert self.server.poll() is None and time.monotonic() < end, "".join(self.lines)
            time.sleep(0.05)

    @staticmethod
    def read(process, lines):
        for line in process.stdout:
            lines.append(line)

    def stop(self):
        if self.server:
            self.server.send_signal(signal.SIGTERM)
            self.server.wait(60)
            self.server = None

    def run(self, command):
        done = subprocess.run(
            ["bash", "-c", "set -o pipefail\n" + self.here(command)], cwd=self.folder, env=self.environment,
            capture_output=True, text=True, timeout=PATIENCE)
        return done.returncode, done.stdout + done.stderr


def follow(reader, command, expected):
    code, printed = reader.run(command)
    failed = code != 0 or (command.startswith("curl") and '"error"' in printed)
    missing = None if expected is None else prints([reader.here(line) for line in expected], printed)
    assert not failed and missing is None, f"$ {command}\n(exit code {code})\n{printed}\nThe page shows:\n" + "\n".join(expected or [])


def commands(lines):
    """(command, lines it is to print or None) of a block; nothing for a block that shows an output."""
    return [(lines[0], None)] if lines[0].startswith("./mvnw") else steps(lines)


def reason_to_skip(command):
    """Why a command cannot run here; None if it can."""
    if command.startswith("./nereid plugins install"):
        return "it downloads 165 MB; test_plugins.py and .ci/run install the plugins"
    if command.startswith("perf_analyzer"):
        return "test_perf_analyzer.py runs it"
    if command.startswith("./mvnw"):
        return "it runs all tests; .ci/run does it"
    if "--compat-ports" in command and taken((8000, 8001, 8002)):
        return f"port {taken((8000, 8001, 8002))} is in use"
    if re.search(r"iris\.joblib|iris:predict", command) and not importlib.util.find_spec("sklearn"):
        return "scikit-learn is not installed"
    return None


def test_every_command_of_the_readme_works(tmp_path):
    reader = Reader(tmp_path)
    done = 0
    try:
        for heading, language, lines in blocks():
            if language == "python":
                (tmp_path / "client.py").write_text(reader.here("\n".join(lines)))
                code, printed = reader.run("python client.py")
                shown = re.search(r"# *(\[\[.*]])$", lines[-1]).group(1)
                assert code == 0 and printed.split() == shown.split(), printed
                done += 1
                continue
            todo = commands(lines)
            if not todo:
                assert heading == "Quick start", f"an unknown block: {lines}"
                if (EXAMPLES / "minilm/1/model.onnx").exists():
                    assert prints([shape(reader.here(line)) for line in lines], shape("".join(reader.lines))) is None, reader.lines
                continue
            for command, expected in todo:
                if reason_to_skip(command):
                    continue
                if command.startswith("./nereid serve"):
                    reader.serve(command)
                    done += 1
                else:
                    follow(reader, command, expected)
                    done += 1
        assert done > 12
    finally:
        reader.stop()


@pytest.mark.parametrize(
    "command", [c for _, _, lines in blocks() for c, _ in commands(lines) if reason_to_skip(c)])
def test_commands_that_do_not_run_here(command):
    """One line for each of them in the summary of the run."""
    pytest.skip(f"{command}: {reason_to_skip(command)}")


def shape(text):
    """Load times, file sizes and versions differ between runs and machines."""
    text = re.sub(r"\d+(\.\d+)? m?s\b", "T", text)
    return re.sub(r"\d+(\.\d+)? [kM]?B", "S", text)
