# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The images with plugins, run with models of each; and the bill of materials of every image, compared with what the image has."""

import csv
import glob
import json
import os
import re
import shutil
import subprocess
import time
import urllib.parse
import zipfile

import container

NATIVE = re.compile(r"\.(so(\.\d+)*|dylib|dll|jnilib)$")
PLUGINS = {"tensorflow": ["tensorflow"], "all": ["onnx-import", "pmml", "pytorch", "s3", "tensorflow", "tflite"]}
LIMITS = {"tensorflow": {"memory": 1 << 30, "cpus": 1.0}, "all": {"memory": 2 << 30, "cpus": 1.0}}
# The library that each plugin loads, of which the process has to have mapped the file in the image.
LIBRARIES = {"tensorflow": "libtensorflow_cc.so.2", "pytorch": "libtorch_cpu.so", "tflite": "libjnitensorflowlite.so"}


def check_bill(release, path, image, check):
    """Compares the bill of materials beside the image in path with the unpacked image."""
    bill = path[: -len(".tar")] + ".cdx.json"
    name = os.path.basename(bill)
    if not os.path.exists(bill):
        check(False, f"{name} is missing")
        return
    with open(bill, encoding="utf-8") as file:
        contents = json.load(file)
    listed = contents["components"]
    references = [c["bom-ref"] for c in listed]
    check(contents["bomFormat"] == "CycloneDX" and len(set(references)) == len(references), f"{name} is CycloneDX, of {len(listed)} components")

    there = set()
    status = os.path.join(image.root, "var/lib/dpkg/status.d")
    for package in os.listdir(status):
        with open(os.path.join(status, package), encoding="utf-8") as file:
            fields = dict(re.findall(r"^([\w-]+): (.*)$", file.read(), re.M))
        there.add((fields["Package"], fields["Version"], fields["Architecture"]))
    packages = {}
    for component in listed:
        match = re.fullmatch(r"pkg:deb/debian/([^@]+)@([^?]+)\?arch=(\w+)&distro=debian-[\w.]+(&upstream=[\w.%+-]+)?", component["purl"])
        if match:
            found = tuple(urllib.parse.unquote(part) for part in match.groups()[:3])
            check(found[:2] == (component["name"], component["version"]), f"the address of the package {component['name']}: {component['purl']}")
            packages[found] = component
    check(set(packages) == there and len(there) > 6, f"it has the {len(there)} packages of Debian in the image {sorted(set(packages) ^ there)}")
    unlicensed = sorted(c["name"] for c in packages.values() if not c.get("licenses"))
    check(not unlicensed, f"each with its licence {unlicensed or ''}")
    texts = sorted(n for n, _, _ in there if not os.path.isfile(os.path.join(image.root, "usr/share/doc", n, "copyright")))
    check(not texts, f"whose text is in the image {texts or ''}")
    # What the C library itself says of its version.
    [library] = glob.glob(os.path.join(image.root, "lib*/*-linux-gnu/libc.so.6")) or glob.glob(os.path.join(image.root, "usr/lib/*-linux-gnu/libc.so.6"))
    with open(library, "rb") as file:
        said = re.search(rb"GNU C Library \(Debian GLIBC ([^)]+)\)", file.read())
    check(said is not None and ("libc6", said.group(1).decode()) in {k[:2] for k in packages}, f"the C library in the image is {said and said.group(1).decode()}")

    with open(os.path.join(image.root, "opt/nereid/runtime/release"), encoding="utf-8") as file:
        java = re.search(r'JAVA_VERSION="(.*)"', file.read()).group(1)
    check(f"pkg:generic/openjdk@{java}" in {c["purl"] for c in listed}, f"it has the Java runtime {java}")
    named = {f"{c['name']}-{c['version']}" for c in listed}
    unknown = []
    for folder, folders, files in os.walk(os.path.join(image.root, "opt/nereid")):
        if "runtime" in folders:
            folders.remove("runtime")
        for file in files:
            base = file[: -len(".jar")]
            if file.endswith(".jar") and base not in named and not any(base.startswith(n + "-") for n in named):
                unknown.append(os.path.relpath(os.path.join(folder, file), image.root))
    check(not unknown, f"it has every jar of the image {unknown or ''}")


def check_variant(release, work, root, variant, check, skip, wait_ready, free_port, post):
    found = glob.glob(os.path.join(release, f"nereid-*-image-{variant}-amd64.tar"))
    if not found:
        skip(f"the image with the plugins {' '.join(PLUGINS[variant])}: it was not made (build/release.sh VERSION --parts image-{variant})")
        return
    [packed] = found
    begun = time.monotonic()
    folder = os.path.join(work, "image-" + variant)
    made = container.Image(packed, folder)
    print(f"        {os.path.basename(packed)}: {os.path.getsize(packed) / 1e6:.0f} MB, {made.size() / 1e6:.0f} MB unpacked", flush=True)
    check(made.tags[0].endswith("-" + variant), f"its tag: {made.tags[0]}")
    check_bill(release, packed, made, check)
    files_of_plugins(made, variant, check)
    if shutil.which("runc") is None or os.getuid() != 0:
        skip(f"the image with the plugins {' '.join(PLUGINS[variant])} was not run: that takes runc and root")
    else:
        serve(made, folder, root, variant, check, wait_ready, free_port, post)
    shutil.rmtree(made.root)
    print(f"        the image {variant} took {time.monotonic() - begun:.0f} s", flush=True)


def files_of_plugins(made, variant, check):
    plugins = os.path.join(made.root, "opt/nereid/plugins")
    check(sorted(os.listdir(plugins)) == PLUGINS[variant], f"its plugins are {' '.join(sorted(os.listdir(plugins)))}")
    twice, symbols, count = [], [], 0
    for folder, _, files in os.walk(plugins):
        for file in files:
            path = os.path.join(folder, file)
            if file.endswith(".jar"):
                with zipfile.ZipFile(path) as jar:
                    twice += [f"{file}: {entry}" for entry in jar.namelist() if NATIVE.search(entry)]
            elif NATIVE.search(file) and not os.path.islink(path):
                count += 1
                sections = subprocess.run(["readelf", "-SW", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
                if re.search(r"\s\.(symtab|debug_info)\s", sections):
                    symbols.append(file)
    check(not twice, f"no jar has native libraries again {twice[:3] or ''}")
    check(count > 2 and not symbols, f"its {count} native libraries have no symbols for debuggers {symbols or ''}")


def serve(made, folder, root, variant, check, wait_ready, free_port, post):
    models = os.path.join(folder, "models")
    bundles = os.path.join(folder, "bundles")
    os.makedirs(models)
    os.makedirs(bundles)
    resources = os.path.join(root, "backends/{}/src/test/resources")
    names = [plugin for plugin in ("tensorflow", "pytorch", "tflite") if plugin in PLUGINS[variant]]
    for plugin in names:
        shutil.copytree(os.path.join(resources.format(plugin), "models/half_plus_two"), os.path.join(models, plugin))
    if variant == "all":
        os.makedirs(os.path.join(models, "pmml/1"))
        shutil.copy(os.path.join(resources.format("pmml"), "pmml/iris-tree.pmml"), os.path.join(models, "pmml/1/model.pmml"))
        shutil.copytree(os.path.join(resources.format("onnx-import"), "nets/mlp"), os.path.join(models, "caffe2/1"))
    subprocess.run(["chmod", "-R", "a+rX", models], check=True)
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    with container.Container(made, bundles, env={"NEREID_PORT": port}, mounts={models: "/models"}, **LIMITS[variant]) as running:
        ready = wait_ready(port, lambda: running.process.poll() is None)
        if ready is None:
            check(False, f"the container did not start: {running.output()[-3000:]}")
            return
        for plugin in names:
            answer = post(f"{base}/v1/models/{plugin}:predict", {"instances": [1.0, 2.0, 5.0]})["predictions"]
            check(answer == [2.5, 3.0, 4.5], f"a model of {plugin} answers {answer}")
        if variant == "all":
            pmml(base, os.path.join(resources.format("pmml"), "pmml/iris-tree.expected"), check, post)
            caffe2(base, os.path.join(models, "caffe2/1/case.txt"), check, post)
        limit = LIMITS[variant]
        print(f"        ready after {ready:.1f} s with {limit['memory'] >> 20} MiB and {limit['cpus']:.0f} processor", flush=True)
        state = json.loads(subprocess.run(["runc", "state", running.name], stdout=subprocess.PIPE, check=True).stdout)
        with open(f"/proc/{state['pid']}/maps", encoding="utf-8") as file:
            mapped = {line.split(maxsplit=5)[5].strip() for line in file if len(line.split(maxsplit=5)) == 6}
        for plugin in names:
            inside = [m for m in mapped if m.startswith(f"/opt/nereid/plugins/{plugin}/native/") and m.endswith("/" + LIBRARIES[plugin])]
            check(bool(inside), f"the process has {LIBRARIES[plugin]} from the image: {inside}")
        written = [n for _, _, found in os.walk(f"/proc/{state['pid']}/root/tmp") for n in found if NATIVE.search(n)]
        check(not written, f"no native library was unpacked to /tmp {written or ''}")
        status, listed = running.run("nereid", "plugins", "list")
        states = {line.split()[0]: " ".join(line.split()[1:4]) for line in listed.splitlines()[1:]}
        absent = [plugin for plugin in PLUGINS[variant] if "/opt/nereid/plugins/" + plugin not in listed or "broken" in states[plugin]]
        check(status == 0 and not absent, f"nereid plugins list: all are installed {(absent, listed) if absent else ''}")
        status = running.terminate()
        check(status == 0, f"SIGTERM ends it with 0 ({status})")


def pmml(base, expected, check, post):
    with open(expected, encoding="utf-8") as file:
        row = next(csv.reader(file))
    answer = post(f"{base}/v1/models/pmml:predict", {"instances": [[float(v) for v in row[:4]]]})["predictions"]
    check(answer[0].get("Species") == row[4], f"a model of PMML answers {answer}")


def caffe2(base, case, check, post):
    with open(case, encoding="utf-8") as file:
        lines = [line.split() for line in file]
    name, shape, data = next((line[1], line[3], line[4:]) for line in lines if line[0] == "input")
    wanted = next(line[4:] for line in lines if line[0] == "output")
    given = {"name": name, "datatype": "FP32", "shape": [int(d) for d in shape.split(",")], "data": [float(v) for v in data]}
    [output] = post(f"{base}/v2/models/caffe2/infer", {"inputs": [given]})["outputs"]
    near = all(abs(a - float(b)) < 1e-5 for a, b in zip(output["data"], wanted)) and len(output["data"]) == len(wanted)
    check(near, f"a model of Caffe2 answers {output['data'][:3]} …")
