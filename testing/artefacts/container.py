# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs an OCI image with runc, without a container engine: the layers unpacked, the network of the machine, limits of cgroups."""

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import uuid
import zlib


class Image:
    """An image layout in a tar file, unpacked below a folder."""

    def __init__(self, path, folder):
        self.root = os.path.join(folder, "rootfs")
        with tarfile.open(path) as archive:
            names = set(archive.getnames())

            def opened(digest):
                return archive.extractfile("blobs/sha256/" + digest.split(":")[1])

            def blob(digest):
                contents = opened(digest).read()
                assert "sha256:" + hashlib.sha256(contents).hexdigest() == digest, digest
                return contents

            assert json.load(archive.extractfile("oci-layout"))["imageLayoutVersion"] == "1.0.0"
            index = json.load(archive.extractfile("index.json"))
            [described] = index["manifests"]
            self.platform = described["platform"]
            manifest = json.loads(blob(described["digest"]))
            self.config = json.loads(blob(manifest["config"]["digest"]))
            # What docker load before version 25 reads.
            [docker] = json.load(archive.extractfile("manifest.json"))
            self.tags = docker["RepoTags"]
            assert set(docker["Layers"]) | {docker["Config"]} <= names
            os.makedirs(self.root)
            for layer, diff in zip(manifest["layers"], self.config["rootfs"]["diff_ids"]):
                unpack(opened(layer["digest"]), layer, diff, self.root)

    def size(self):
        """Bytes of the files, unpacked."""
        total = 0
        for folder, _, files in os.walk(self.root):
            total += sum(os.lstat(os.path.join(folder, name)).st_size for name in files)
        return total


def unpack(stream, layer, diff, root):
    """Unpacks a layer below root, and compares its sizes and digests."""
    packed, plain, size = hashlib.sha256(), hashlib.sha256(), 0
    inflate = zlib.decompressobj(31)
    with subprocess.Popen(["tar", "-x", "--numeric-owner", "-C", root], stdin=subprocess.PIPE) as tar:
        for block in iter(lambda: stream.read(1 << 20), b""):
            packed.update(block)
            size += len(block)
            contents = inflate.decompress(block)
            plain.update(contents)
            tar.stdin.write(contents)
        tar.stdin.close()
    assert tar.returncode == 0 and inflate.eof, layer
    assert (size, "sha256:" + packed.hexdigest(), "sha256:" + plain.hexdigest()) == (layer["size"], layer["digest"], diff), layer


class Container:
    """A running container; its output is in the file log."""

    def __init__(self, image, folder, arguments=None, env=None, mounts=None, memory=None, cpus=None):
        self.name = "nereid-" + uuid.uuid4().hex[:8]
        self.bundle = os.path.join(folder, self.name)
        self.log = os.path.join(folder, self.name + ".log")
        os.makedirs(self.bundle)
        given = image.config["config"]
        user, group = given["User"].split(":")
        subprocess.run(["runc", "spec"], cwd=self.bundle, check=True)
        path = os.path.join(self.bundle, "config.json")
        with open(path, encoding="utf-8") as file:
            spec = json.load(file)
        process = spec["process"]
        process.update(
            terminal=False,
            user={"uid": int(user), "gid": int(group)},
            args=given["Entrypoint"] + (given["Cmd"] if arguments is None else arguments),
            env=given["Env"] + [f"{name}={value}" for name, value in (env or {}).items()],
            cwd=given["WorkingDir"],
            capabilities={},
            noNewPrivileges=True,
        )
        process["rlimits"] = [{"type": "RLIMIT_NOFILE", "hard": 4096, "soft": 4096}]
        spec["root"] = {"path": image.root, "readonly": True}
        spec["mounts"].append(
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["noexec", "nosuid", "nodev", "mode=1777", "size=256m"]}
        )
        for source, destination in (mounts or {}).items():
            spec["mounts"].append({"destination": destination, "type": "bind", "source": source, "options": ["rbind", "ro"]})
        spec["linux"]["namespaces"] = [n for n in spec["linux"]["namespaces"] if n["type"] != "network"]
        resources = spec["linux"]["resources"]
        if memory:
            resources["memory"] = {"limit": memory, "swap": memory}
        if cpus:
            resources["cpu"] = {"period": 100000, "quota": int(100000 * cpus)}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(spec, file)
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen(["runc", "run", self.name], cwd=self.bundle, stdout=out, stderr=out)

    def output(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def run(self, *arguments):
        """Runs a command in the container; returns its exit status and output."""
        result = subprocess.run(
            ["runc", "exec", self.name, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120
        )
        return result.returncode, result.stdout

    def terminate(self):
        """Sends SIGTERM; returns the exit status."""
        subprocess.run(["runc", "kill", self.name, "TERM"], check=False)
        return self.process.wait(timeout=120)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            subprocess.run(["runc", "kill", self.name, "KILL"], check=False)
            self.process.wait(timeout=60)
        subprocess.run(["runc", "delete", "--force", self.name], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.bundle, ignore_errors=True)
