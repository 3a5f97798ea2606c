#!/usr/bin/env python3
# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""configs.py [PART-OF-A-NAME]: runs the corpus of configurations through Triton's core and prints the differences.

Run build.sh first. One line for each difference:

    TEXT   both reject it, with different messages (messages of protobuf's parser are not compared)
    LAX    Triton accepts what Nereid rejects
    STRICT Triton rejects what Nereid accepts
    SHOWN  both accept it, with different normalised forms
    CRASH  the core crashes on it
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CORPUS = HERE.parent.parent / "serving/repository/src/test/resources/corpus"
PARTS = {"one": (["x"], ["y", "l", "r", "z"]), "two": (["x"], ["y"]), "left": (["x"], ["y"]), "right": (["x"], ["y"]),
         "join": (["p", "q"], ["y"])}


def model(root, name, text):
    (root / name / "1").mkdir(parents=True)
    (root / name / "config.pbtxt").write_text(text)


def ask(case):
    """Runs a case through the core; returns its configuration or None, and its error."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        shutil.copytree(case, root / "m", ignore=shutil.ignore_patterns("expected*"))
        (root / "m/1").mkdir(exist_ok=True)
        config = root / "m/config.pbtxt"
        text = config.read_text()
        if "ensemble_scheduling" in text:
            for name, (inputs, outputs) in PARTS.items():
                tensor = '%s { name: "%s" data_type: TYPE_FP32 dims: 4 }\n'
                model(root, name, 'backend: "identity" max_batch_size: 8\n'
                      + "".join(tensor % ("input", i) for i in inputs) + "".join(tensor % ("output", o) for o in outputs))
        elif not re.search(r"^(platform|backend):", text, re.M):
            config.write_text(text + '\nbackend: "identity"\n')
        if "onnxruntime" in text:
            (root / "m/1/model.onnx").write_text("x")
        run = subprocess.run([HERE / "target/oracle", root, HERE / "target/backends"], capture_output=True, timeout=120)
        said = re.search(r"^== m\n(config|error \w+(?: argument)?) (.*)$", run.stdout.decode(errors="replace"), re.M)
        log = run.stderr.decode(errors="replace")
        if said is None:
            return None, None
        if said[1] == "config":
            return json.loads(said[2]), ""
        if "Error parsing text-format" in log:
            return None, "PARSER " + re.search(r"Error parsing text-format.*?: (.*)", log)[1]
        polled = re.search(r"Poll failed for model directory 'm': (.*)", log)
        return None, polled[1] if polled else said[2]


def differences(theirs, ours, path=""):
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in dict.fromkeys([*theirs, *ours]):
            if key not in ours:
                yield f"{path}.{key} is Triton's only"
            elif key not in theirs:
                yield f"{path}.{key} is ours only"
            else:
                yield from differences(theirs[key], ours[key], f"{path}.{key}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for i, (a, b) in enumerate(zip(theirs, ours)):
            yield from differences(a, b, f"{path}[{i}]")
    elif theirs != ours and path not in (".backend", ".default_model_filename"):
        yield f"{path}: {json.dumps(theirs)} there, {json.dumps(ours)} here"


def main():
    agree = 0
    for case in sorted(CORPUS.iterdir()):
        lines = (case / "expected").read_text().splitlines()
        if (not (case / "config.pbtxt").exists() or "# gpus" in lines or case.name == "group-huge-count"
                or (len(sys.argv) > 1 and sys.argv[1] not in case.name)):
            continue
        ours = [re.sub(r"^\w+ \d+:\d+ ", "", line) for line in lines if line.startswith("ERROR")]
        config, error = ask(case)
        if error is None:
            print("CRASH", case.name)
        elif ours and config is not None:
            print("LAX", case.name, ours)
        elif ours:
            if error.startswith("PARSER") or any(o in error for o in ours):
                agree += 1
            else:
                print("TEXT", case.name, "there:", error, "here:", ours)
        elif config is None:
            print("STRICT", case.name, error)
        else:
            found = list(differences(config, json.loads((case / "expected.json").read_text())))
            if found:
                print("SHOWN", case.name, "; ".join(found))
            else:
                agree += 1
    print(agree, "agree")


main()
