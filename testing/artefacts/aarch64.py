# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the distribution for Linux on aarch64 in an emulator: it is not run on real hardware."""

import glob
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import urllib.request

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/release"))
import foreign  # noqa: E402
import platforms  # noqa: E402

MOST = 125e6
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


def check_aarch64(release, work, root, unpack, check, skip, wait_ready, free_port):
    packed = glob.glob(os.path.join(release, "nereid-*-linux-aarch64.tar.gz"))
    platform = platforms.PLATFORMS["linux-aarch64"]
    if not packed:
        skip(f"the distribution for aarch64: {foreign.missing(platform) or 'it was not made'}")
        return
    size = os.path.getsize(packed[0])
    check(size <= MOST, f"{os.path.basename(packed[0])}: {size / 1e6:.1f} MB, at most {MOST / 1e6:.0f}")
    home = unpack(packed[0], os.path.join(work, "aarch64"))
    machines = {}
    for folder, _, names in os.walk(home):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                machines.setdefault(machine(path), []).append(os.path.relpath(path, home))
    machines.pop(None)
    natives = machines.get(EM_AARCH64, [])
    check(set(machines) == {EM_AARCH64} and len(natives) > 20, f"its {len(natives)} programs and native libraries are for aarch64 {sorted(set(machines) - {EM_AARCH64})}")
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
    skip("ONNX Runtime on aarch64: it was not run, neither emulated nor on real hardware")
    check(right, f"emulated, a model of scikit-learn answers; ready after {ready:.0f} s" if right else f"emulated, it does not answer:\n{text[-3000:]}")
