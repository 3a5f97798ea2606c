# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The commands of the documents, copied as a reader copies them. A block of `sh` or `console` runs, unless the line above it says
`<!-- not run: REASON -->`. README.md, docs/KSERVE.md and docs/WRITING-A-BACKEND.md have tests of their own."""
import importlib.util
import pathlib
import re
import shutil
import subprocess
import time

import pytest

pytest.importorskip("yaml")
pytest.importorskip("tritonclient.grpc")

from server import FIXTURES, ROOT, program
from test_control_page import COMMANDS, prints, steps
from test_readme import PATIENCE, Reader, free_port, taken

OWN_TESTS = {
    "README.md": "test_readme.py",
    "docs/KSERVE.md": "test_control_page.py",
    "docs/WRITING-A-BACKEND.md": "WritingABackendTest",
}
NOT_RUN = re.compile(r"<!-- not run: (.*) -->")
MODEL_LIST = """
model_config_list {
  config {
    name: "half_plus_two" base_path: "%(models)s/list/half_plus_two" model_platform: "tensorflow"
    model_version_policy { all {} }
    version_labels { key: "canary" value: 1 }
    logging_config {
      log_collector_config { type: "tfrecord" filename_prefix: "%(folder)s/logs/half_plus_two" }
      sampling_config { sampling_rate: 1 }
    }
  }
  %(more)s
}
"""
THREE = 'config { name: "half_plus_three" base_path: "%s/list/half_plus_three" model_platform: "tensorflow" }'


def pages():
    found = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "RELEASE.md")]
    for folder in ("docs", "examples", "testing"):
        found += sorted(p for p in (ROOT / folder).rglob("*.md") if not {"target", "venv"} & set(p.parts))
    return found


def blocks(page):
    """(line number, language, reason not to run or None, lines) of every fenced block."""
    language, lines, before = None, [], ""
    for number, line in enumerate(page.read_text().splitlines(), 1):
        fence = re.match(r" *```(\S*) *$", line)
        if language is None and fence:
            language, lines, start = fence.group(1), [], number
            reason = NOT_RUN.search(before)
        elif language is not None and fence:
            yield start, language, reason and reason.group(1), lines
            language = None
        elif language is not None:
            lines.append(line)
        before = line


def commands(page):
    return [block for block in blocks(page) if block[1] in ("sh", "console")]


NAMES = [str(page.relative_to(ROOT)) for page in pages()]
RUN = [name for name in NAMES if name not in OWN_TESTS and any(not b[2] for b in commands(ROOT / name))]
SKIPPED = [(name, b[0], b[2]) for name in NAMES for b in commands(ROOT / name) if b[2]]


# ---- what the pages assume; each returns why a block cannot run here ----


def configuration(reader, number, lines):
    if lines[0].startswith("nereid validate"):
        reader.serve("nereid serve models")
    else:
        reader.serve_list("--port=8500" if "8500" in lines[0] else "--port=8080")
        (reader.folder / "next.config").write_text(reader.model_list(THREE % (reader.models), sampling=0.5))
    return None


def explain(reader, number, lines):
    if not importlib.util.find_spec("xgboost"):
        return "xgboost is not installed"
    import numpy as np
    import xgboost

    rows = np.array([[35, 48000, 0.2], [22, 9000, 0.9], [50, 70000, 0.1], [30, 20000, 0.6]] * 10, dtype=np.float32)
    data = xgboost.DMatrix(rows, label=(rows[:, 2] < 0.5).astype(int), feature_names=["age", "income", "debt"])
    folder = reader.models / "credit/1"
    folder.mkdir(parents=True, exist_ok=True)
    xgboost.train({"objective": "binary:logistic"}, data, 3).save_model(folder / "model.json")
    return None


def formats(reader, number, lines):
    if lines[0].startswith("curl"):
        if not importlib.util.find_spec("xgboost"):
            return "xgboost is not installed"
        import numpy as np
        import xgboost

        rows = np.random.default_rng(1).random((60, 4), dtype=np.float32)
        folder = reader.models / "iris/1"
        folder.mkdir(parents=True)
        xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(rows, label=rows[:, 0] > 0.5), 3).save_model(folder / "model.json")
        reader.serve("nereid serve models --port=8080")
    else:
        if not shutil.which("javac"):
            return "there is not a javac: the JDK is a runtime alone"
        java = next(b for b in blocks(ROOT / "docs/FORMATS.md") if b[1] == "java" and "class Doubler" in "\n".join(b[3]))
        (reader.folder / "Doubler.java").write_text("\n".join(java[3]))
        reader.environment["NEREID"] = str(pathlib.Path(program()).resolve().parents[1])
    return None


def operating(reader, number, lines):
    first = lines[0]
    if first.startswith("$ curl") and "model-config" in first:
        reader.serve_list("--port=8500", more=THREE % reader.models)
        (reader.folder / "models.config").write_text(reader.model_list(sampling=0.5))
    elif "/labels/canary" in first:
        reader.serve_list("--port=8501")
    elif first.startswith("$ nereid replay") and not list(reader.folder.glob("logs/half_plus_two-*.tfrecord")):
        # The block before has sent requests; a file is complete when its server ends.
        reader.stop()
        reader.serve_list("--port=8500", more=THREE % reader.models)
    elif first.startswith("nereid keys"):
        (reader.folder / "access.yaml").write_text("anonymous: [health]\n")
    elif first.startswith("nereid kubeconfig"):
        reader.stop()
        reader.environment["NEREID_CONTROL_DIR"] = str(reader.folder / "control")
        reader.serve("nereid serve --control")
    return None


def command_line(reader, number, lines):
    if lines[0].startswith("nereid models"):
        reader.serve("nereid serve examples/models")
    return None


PREPARE = {
    "docs/CLI.md": command_line,
    "docs/CONFIGURATION.md": configuration,
    "docs/EXPLAIN.md": explain,
    "docs/FORMATS.md": formats,
    "docs/OPERATING.md": operating,
}


class PageReader(Reader):
    """A reader whose PATH has the program, with the models that the pages name."""

    def __init__(self, folder):
        super().__init__(folder)
        self.ports[8000] = free_port()
        distribution = pathlib.Path(program()).resolve().parent
        for name in ("nereid", "tensorflow_model_server"):
            (folder / "bin" / name).write_text(f'#!/bin/sh\nexec "{distribution / name}" "$@"\n')
            (folder / "bin" / name).chmod(0o755)
        shutil.copytree(self.models / "my_model", self.models / "resnet")
        config = self.models / "resnet/config.pbtxt"
        config.write_text(config.read_text().replace("my_model", "resnet"))
        for version in ("half_plus_two/1", "half_plus_three/1"):
            (self.models / "list" / version).mkdir(parents=True, exist_ok=True)
            shutil.copy(FIXTURES / "half_plus_two.onnx", self.models / "list" / version / "model.onnx")

    def model_list(self, more="", sampling=1):
        text = MODEL_LIST % {"models": self.models, "folder": self.folder, "more": more}
        return text.replace("sampling_rate: 1", f"sampling_rate: {sampling}")

    def serve_list(self, port, more=""):
        (self.folder / "served.config").write_text(self.model_list(more))
        self.serve(f"nereid serve --model_config_file=served.config {port}")


def runs_elsewhere(command):
    if command.startswith("perf_analyzer"):
        return "test_perf_analyzer.py runs it"
    if "--compat-ports" in command and taken((8000, 8001, 8002)):
        return f"port {taken((8000, 8001, 8002))} is in use"
    if command.startswith("kubectl") and not shutil.which("kubectl"):
        return "kubectl is not installed"
    return None


@pytest.mark.parametrize("name", RUN)
def test_commands_of(name, tmp_path):
    page = ROOT / name
    reader = PageReader(tmp_path)
    done, left = 0, []
    try:
        for number, language, reason, lines in commands(page):
            if reason:
                continue
            why = PREPARE[name](reader, number, lines) if name in PREPARE else None
            if why:
                left.append(f"{name}:{number}: {why}")
                continue
            parts = steps(lines, (*COMMANDS, "nereid", "tensorflow_model_server"))
            assert parts, f"{name}:{number}: no command of {lines}"
            for command, expected in parts:
                if runs_elsewhere(command):
                    left.append(f"{name}:{number}: {command}: {runs_elsewhere(command)}")
                    continue
                place = f"{name}:{number}: $ {command}"
                if re.match(r"(\$NEREID/bin/)?(nereid serve|tensorflow_model_server)\b", command):
                    reader.serve(command)
                else:
                    code, printed = reader.run(command)
                    assert code == 0, f"{place}\n(exit code {code})\n{printed}"
                    assert not (command.startswith("curl") and '"error"' in printed), f"{place}\n{printed}"
                    if expected:
                        missing = prints([shown(reader.here(line)) for line in expected], shown(printed))
                        assert missing is None, f"{place}\n{printed}\nThe page shows:\n" + "\n".join(expected)
                    if command.startswith("nereid keys create"):
                        reader.environment["KEY"] = re.search(r"\b(nk_\S+|\S{32,})", printed).group(0)
                done += 1
    finally:
        reader.stop()
    for why in left:
        print(why)
    if done == 0:
        pytest.skip("; ".join(left))


def shown(text):
    """Numbers of requests, rates and latencies differ between runs."""
    text = re.sub(r"\d+(\.\d+)? (s|requests|per second|responses|differ|failed)\b", r"N \2", text)
    return re.sub(r"(p50|p90|p99|max) \d+\.\d+", r"\1 N", text)


@pytest.mark.parametrize("name,number,reason", SKIPPED)
def test_commands_that_do_not_run(name, number, reason):
    """One line for each of them in the summary of the run."""
    pytest.skip(f"{name}:{number}: {reason}")


def test_the_number_of_commands_of_each_page(capsys):
    with capsys.disabled():
        print()
        for name in NAMES:
            all_blocks = commands(ROOT / name)
            not_run = sum(1 for block in all_blocks if block[2])
            if all_blocks:
                by = f", by {OWN_TESTS[name]}" if name in OWN_TESTS else ""
                print(f"  {name}: {len(all_blocks) - not_run} blocks of commands run{by}, {not_run} do not, with a reason")
