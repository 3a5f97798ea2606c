# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The Python wheel: the distribution of one platform with its runtime inside, a command and a small Python API."""

import base64
import datetime
import hashlib
import os
import re
import sys
import zipfile

import files

# One backend needs a newer one: without it, its models are rejected with that reason, and the rest works.
NEWER = {"libtokenizers.so": (2, 34)}
PYTHON = ">=3.8"
# What the program does not need in a package.
LEFT_OUT = ("examples/", "share/", "bin/nereid.cmd")


def python_version(version):
    """A version of the release as PEP 440 has it: 1.2.0-rc.1 is 1.2.0rc1, 1.2.0-SNAPSHOT is 1.2.0.dev0."""
    match = re.fullmatch(r"(\d+(?:\.\d+)*)(?:-(.*))?", version)
    if match is None:
        sys.exit(f"release: {version} is not a version that Python knows (expected: numbers, then -rc1, -beta1, -alpha1 or -SNAPSHOT)")
    number, more = match.groups()
    if not more:
        return number
    if more == "SNAPSHOT":
        return number + ".dev0"
    kind = re.fullmatch(r"(alpha|beta|rc|m)[.-]?(\d*)", more.lower())
    if kind is None:
        sys.exit(f"release: the part {more} of {version} is not one that Python knows (expected: rc1, beta1, alpha1 or SNAPSHOT)")
    short = {"alpha": "a", "beta": "b", "rc": "rc", "m": "a"}[kind.group(1)]
    return f"{number}{short}{kind.group(2) or 0}"


def build(out, tree, stage, version, platform, time):
    """Writes the wheel into the folder out; returns its name."""
    glibc = platform.glibc
    _check_glibc(stage, glibc)
    python = python_version(version)
    tag = f"py3-none-manylinux_{glibc[0]}_{glibc[1]}_{platform.machine}"
    name = f"nereid-{python}-{tag}.whl"
    moment = datetime.datetime.fromtimestamp(time, datetime.timezone.utc).timetuple()[:6]
    entries = {}
    package = os.path.join(tree, "deploy/wheel/nereid")
    for file in files.paths(package):
        if not file.startswith("__pycache__"):
            entries["nereid/" + file] = _contents(os.path.join(package, file))
    for file in files.paths(stage):
        path = os.path.join(stage, file)
        # A wheel has no links: it holds what they lead to.
        if os.path.isfile(path) and not file.startswith(LEFT_OUT):
            entries["nereid/_distribution/" + file] = _contents(path)
    entries["nereid/_distribution/VERSION"] = (version.encode() + b"\n", 0o644)
    entries["nereid/_distribution/TIME"] = (str(time).encode() + b"\n", 0o644)
    info = f"nereid-{python}.dist-info/"
    entries[info + "METADATA"] = (_metadata(tree, python).encode(), 0o644)
    entries[info + "WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: nereid\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), 0o644)
    entries[info + "entry_points.txt"] = (b"[console_scripts]\nnereid = nereid.__main__:main\n", 0o644)
    for file in ("LICENSE", "NOTICE"):
        entries[f"{info}licenses/{file}"] = _contents(os.path.join(tree, file))
    record = info + "RECORD"
    lines = []
    for file in sorted(entries):
        contents, _ = entries[file]
        digest = base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()
        lines.append(f"{file},sha256={digest},{len(contents)}\n")
    lines.append(record + ",,\n")
    # The record is the last entry, so that readers find it at once.
    ordered = [*((file, *entries[file]) for file in sorted(entries)), (record, "".join(lines).encode(), 0o644)]
    with zipfile.ZipFile(os.path.join(out, name), "w") as archive:
        for file, contents, mode in ordered:
            entry = zipfile.ZipInfo(file, moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100000 | mode) << 16
            archive.writestr(entry, contents, compresslevel=files.LEVEL)
    return name


def _contents(path):
    with open(path, "rb") as file:
        return file.read(), 0o755 if os.access(path, os.X_OK) else 0o644


def _metadata(tree, version):
    with open(os.path.join(tree, "deploy/wheel/README.md"), encoding="utf-8") as file:
        readme = file.read()
    head = [
        "Metadata-Version: 2.1",
        "Name: nereid",
        f"Version: {version}",
        "Summary: One server for machine-learning models: the protocols of KServe, Triton and TensorFlow Serving",
        "License: Apache-2.0",
        "License-File: LICENSE",
        "License-File: NOTICE",
        f"Requires-Python: {PYTHON}",
        "Provides-Extra: numpy",
        "Requires-Dist: numpy; extra == 'numpy'",
        "Classifier: License :: OSI Approved :: Apache Software License",
        "Classifier: Operating System :: POSIX :: Linux",
        "Classifier: Programming Language :: Python :: 3",
        "Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Classifier: Typing :: Typed",
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(head) + "\n\n" + readme


def _check_glibc(stage, glibc):
    """Fails when a native library needs a C library that is newer than the wheel says."""
    for file in files.paths(stage):
        path = os.path.join(stage, file)
        if os.path.islink(path) or not os.path.isfile(path):
            continue
        with open(path, "rb") as opened:
            if opened.read(4) != b"\x7fELF":
                continue
            contents = opened.read()
        needed = max((tuple(map(int, m.group(1).split(b"."))) for m in re.finditer(rb"\0GLIBC_(\d+\.\d+)", contents)), default=(0,))
        if needed > NEWER.get(os.path.basename(file), glibc):
            sys.exit(f"release: {file} needs glibc {'.'.join(map(str, needed))}, and the wheel's tag says {'.'.join(map(str, glibc))}")
