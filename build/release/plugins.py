# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
The plugins of an image: installed by the program itself, which verifies each library, and with their native libraries as files.

An image's root file system may be read-only and nothing may be executed from its /tmp, so that libraries cannot be unpacked at the first
use. They lie in the folder native of the plugin's directory, without symbols for debuggers, and the jars do not have them again.
"""

import glob
import json
import os
import re
import shutil
import sys
import zipfile

import distribution
import files

# The images that have plugins, and which.
VARIANTS = {
    "image-tensorflow": ["tensorflow"],
    "image-all": ["onnx-import", "pmml", "pytorch", "s3", "tensorflow", "tflite"],
    "image-cuda": ["cuda", "onnxruntime-cuda"],
}
# For GPUs: an image of their own, as they are large and need libraries of NVIDIA, whose licence does not allow that an image of Nereid has them.
LEFT_OUT = set(VARIANTS["image-cuda"])
# Variables of the environment by variant. NVIDIA's container runtime mounts the driver's libraries that they name: CUDA and NVML.
ENVIRONMENT = {"cuda": ["NVIDIA_DRIVER_CAPABILITIES=compute,utility"]}
FOLDER = "plugins"
NATIVE = re.compile(r"\.(so(\.\d+)*|dylib|dll|jnilib)$")


class Plugin:
    """An installed plugin: its name, its version, the tree that a layer of an image has, and the libraries in plugins.json."""

    def __init__(self, manifest, root, thinned):
        self.name = manifest["name"]
        self.licence = manifest["licence"]
        self.artifacts = manifest["artifacts"]
        self.root = root
        self.thinned = thinned


def known(tree):
    """What the program knows of its plugins, by name."""
    with open(os.path.join(tree, "apps/nereid/target/classes/io/nereid/app/plugins.json"), encoding="utf-8") as file:
        manifests = {manifest["name"]: manifest for manifest in json.load(file)}
    for variant, names in VARIANTS.items():
        missing = sorted(set(names) - set(manifests))
        if missing:
            sys.exit(f"release: the program does not know the plugins {', '.join(missing)} of {variant}; there are {', '.join(sorted(manifests))}")
    left = sorted(set(manifests) - set(VARIANTS["image-all"]) - LEFT_OUT)
    if left:
        sys.exit(f"release: the plugins {', '.join(left)} are not in image-all; name them in VARIANTS or LEFT_OUT of build/release/plugins.py")
    return manifests


def install(manifest, stage, home, platform, time, work):
    """
    Installs a plugin with the program in the folder stage; home is the program's folder in the image.

    Libraries come from the local Maven repository where it has them, else from NEREID_MAVEN_REPOSITORY or Maven Central.
    """
    name = manifest["name"]
    root = os.path.join(work, "plugin-" + name)
    cache = os.path.join(work, "plugin-cache-" + name)
    shutil.rmtree(root, ignore_errors=True)
    plugins = os.path.join(root, home, FOLDER)
    os.makedirs(plugins)
    # It loads the plugin once: what the plugin then unpacks is what it needs.
    distribution.run(
        [os.path.join(stage, "bin", "nereid"), "plugins", "install", name, "--plugin-dir", plugins],
        env={**os.environ, "XDG_CACHE_HOME": cache},
    )
    directory = os.path.join(plugins, name)
    native = os.path.join(directory, "native")
    unpacked = os.path.join(cache, "nereid")
    for jar in sorted(glob.glob(os.path.join(unpacked, "javacpp", "*.jar"))):
        shutil.copytree(jar, native, symlinks=True, dirs_exist_ok=True)
    # ONNX Runtime's libraries lie flat: its providers are opened in the directory of the library itself.
    for directory_of_jar in sorted(glob.glob(os.path.join(unpacked, "onnxruntime_gpu-*"))):
        shutil.copytree(directory_of_jar, native, symlinks=True, dirs_exist_ok=True)
    if os.path.isdir(os.path.join(unpacked, "djl")):
        shutil.copytree(os.path.join(unpacked, "djl"), os.path.join(native, "djl"), symlinks=True)
    shutil.rmtree(cache, ignore_errors=True)
    if not os.path.isdir(native):
        # Of a plugin that was not loaded, as it needs a GPU: all that its jars have for Linux on x86-64.
        for jar in sorted(glob.glob(os.path.join(directory, "*.jar"))):
            with zipfile.ZipFile(jar) as packed:
                for entry in packed.namelist():
                    if "linux-x86_64/" in entry and NATIVE.search(entry):
                        packed.extract(entry, native)
    thinned = set()
    if os.path.isdir(native):
        libraries = [path for path in (os.path.join(native, file) for file in files.paths(native)) if NATIVE.search(path) and not os.path.islink(path)]
        for path in libraries:
            os.chmod(path, 0o755)
            distribution.strip(path, platform)
        for jar in sorted(glob.glob(os.path.join(directory, "*.jar"))):
            if files.jar_without(jar, jar + ".new", lambda entry: NATIVE.search(entry) is not None):
                thinned.add(os.path.basename(jar))
                os.replace(jar + ".new", jar)
            else:
                os.remove(jar + ".new")
    files.normalize(root, time)
    return Plugin(manifest, root, thinned)
