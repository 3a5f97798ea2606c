# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the distribution for Linux on aarch64 in an emulator: it is not run on real hardware."""

import base64
import csv
import filecmp
import glob
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import urllib.request
import zipfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/release"))
import foreign  # noqa: E402
import platforms  # noqa: E402

MOST = 125e6
MOST_WHEEL = 100e6
EM_AARCH64 = 183


def machine(path):
    """The machine of an ELF file; None for other files."""
    with open(path, "rb") as file:
        head = file.read(20)
    return struct.unpack_from("<H", head, 18)[0] if head[:4] == b"\x7fELF" and len(head) == 20 else None


def predicts(port):
    """Whether the model answers two rows with two numbers."""
    base = f"http://127.0.0.1:{port}/v2/models/model"
    with urllib.request.urlopen(base, timeout=60) as answer:
        taken = json.load(answer)["inputs"][0]
    columns = taken["shape"][-1]
    rows = {"name": taken["name"], "datatype": taken["datatype"], "shape": [2, columns], "data": [0.5] * (2 * columns)}
    request = urllib.request.Request(base + "/infer", json.dumps({"inputs": [rows]}).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        data = json.load(answer)["outputs"][0]["data"]
    return len(data) == 2 and data[0] == data[1]


def check_machines(home, check):
    machines = {}
    for folder, _, names in os.walk(home):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                machines.setdefault(machine(path), []).append(os.path.relpath(path, home))
    machines.pop(None)
    natives = machines.get(EM_AARCH64, [])
    check(set(machines) == {EM_AARCH64} and len(natives) > 20, f"its {len(natives)} programs and native libraries are for aarch64 {sorted(set(machines) - {EM_AARCH64})}")


def check_wheel(release, work, home, platform, check):
    """
    Unpacks the wheel as an installer does, and compares it with the unpacked archive in the folder home, which is the one that is
    started. Returns the folder of the unpacked wheel.
    """
    [packed] = glob.glob(os.path.join(release, "nereid-*_aarch64.whl"))
    shown = os.path.basename(packed)
    check(os.path.getsize(packed) <= MOST_WHEEL, f"{shown}: {os.path.getsize(packed) / 1e6:.1f} MB, at most {MOST_WHEEL / 1e6:.0f}")
    tag = f"py3-none-manylinux_{platform.glibc[0]}_{platform.glibc[1]}_{platform.machine}"
    target = os.path.join(work, "aarch64-wheel")
    wrong = []
    with zipfile.ZipFile(packed) as archive:
        [record] = [name for name in archive.namelist() if name.endswith(".dist-info/RECORD")]
        described = archive.read(os.path.dirname(record) + "/WHEEL").decode()
        check(shown.endswith(f"-{tag}.whl") and f"\nTag: {tag}\n" in described, f"its tag is {tag}")
        recorded = {row[0]: row[1:] for row in csv.reader(archive.read(record).decode().splitlines())}
        for entry in archive.infolist():
            contents = archive.read(entry)
            digest = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()
            if recorded.get(entry.filename) != (["", ""] if entry.filename == record else [digest, str(len(contents))]):
                wrong.append(entry.filename)
            path = archive.extract(entry, target)
            os.chmod(path, entry.external_attr >> 16 & 0o777)
    check(not wrong and len(recorded) > 100, f"its RECORD has the checksums of its {len(recorded)} files {wrong[:3] or ''}")
    inside = os.path.join(target, "nereid/_distribution")
    different = []
    for folder, _, names in os.walk(inside):
        for name in names:
            path = os.path.join(folder, name)
            other = os.path.join(home, os.path.relpath(path, inside))
            if os.path.dirname(path) == inside and name in ("VERSION", "TIME"):
                continue
            if not os.path.exists(other) or not filecmp.cmp(path, other, shallow=False) or os.access(path, os.X_OK) != os.access(other, os.X_OK):
                different.append(os.path.relpath(path, inside))
    check(not different, f"its files and their modes are those of the archive {different[:3] or ''}")
    check_machines(target, check)
    needed = (0,)
    for folder, _, names in os.walk(inside):
        for name in names:
            path = os.path.join(folder, name)
            if machine(path) == EM_AARCH64:
                with open(path, "rb") as file:
                    needed = max([needed, *(tuple(map(int, m.group(1).split(b"."))) for m in re.finditer(rb"\0GLIBC_(\d+\.\d+)", file.read()))])
    check((0,) < needed <= platform.glibc, f"its natives need glibc {'.'.join(map(str, needed))}")
    return target


def check_aarch64(release, work, root, unpack, check, skip, wait_ready, free_port):
    packed = glob.glob(os.path.join(release, "nereid-*-linux-aarch64.tar.gz"))
    platform = platforms.PLATFORMS["linux-aarch64"]
    if not packed:
        skip(f"the distribution for aarch64: {foreign.missing(platform) or 'it was not made'}")
        return
    size = os.path.getsize(packed[0])
    check(size <= MOST, f"{os.path.basename(packed[0])}: {size / 1e6:.1f} MB, at most {MOST / 1e6:.0f}")
    home = unpack(packed[0], os.path.join(work, "aarch64"))
    check_machines(home, check)
    wheel = check_wheel(release, work, home, platform, check)
    if shutil.which("qemu-aarch64-static") is None:
        skip("the distribution for aarch64 was not started: qemu-aarch64-static is not on the PATH")
        return
    system = os.path.join(work, "aarch64-system")
    foreign.packages(foreign.SYSTEM, platform, system, work)
    # A model that Java computes: ONNX Runtime ends with a fault in the emulator of Debian 12 (qemu 7.2), before it runs anything.
    model = os.path.join(work, "model.joblib")
    shutil.copy(sorted(glob.glob(os.path.join(root, "backends/sklearn/src/test/resources/models/*/knn_reg.joblib")))[-1], model)
    port = free_port()
    # The launcher asks a Java for its version, and cannot ask an emulated one: the command is its, but for the Java.
    java = os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("java"))))
    printed = subprocess.run(
        [os.path.join(home, "bin/nereid"), "serve", model, "--port", str(port)],
        env={"PATH": "/usr/bin:/bin", "HOME": work, "NEREID_LAUNCH": "print", "NEREID_CDS": "off", "NEREID_JAVA_HOME": java},
        stdout=subprocess.PIPE, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    command = [*foreign.emulator(platform, system), os.path.join(home, "runtime/bin/java"), *printed[1:]]
    with tempfile.TemporaryFile() as log:
        environment = {"PATH": "/usr/bin:/bin", "HOME": work, "ORT_DISABLE_TELEMETRY": "1"}
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        ready = wait_ready(port, lambda: process.poll() is None, 240)
        right = ready is not None and predicts(port)
        process.terminate()
        process.wait(timeout=60)
        log.seek(0)
        text = log.read().decode(errors="replace")
    version = subprocess.run(
        [*foreign.emulator(platform, system), os.path.join(wheel, "nereid/_distribution/runtime/bin/java"), "-version"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    check(version.returncode == 0 and '"17.' in version.stdout, f"emulated, the runtime of the wheel starts: {version.stdout.splitlines()[:1]}")
    skip("ONNX Runtime on aarch64: it was not run, neither emulated nor on real hardware")
    check(right, f"emulated, a model of scikit-learn answers; ready after {ready:.0f} s" if right else f"emulated, it does not answer:\n{text[-3000:]}")
