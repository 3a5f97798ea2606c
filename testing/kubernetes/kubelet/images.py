# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
Images of the tests of a real node, each an OCI image layout in a tar file: pause.tar, which only waits, and model.tar, which has a
scikit-learn model below /models and a shell, as images for KServe's modelcar have.

Use: images.py BUSYBOX FOLDER
"""
import gzip
import hashlib
import io
import json
import pathlib
import sys
import tarfile

MODEL = pathlib.Path(__file__).resolve().parents[3] / "backends/sklearn/src/test/resources/models/1.9.1/forest.joblib"


def layer(busybox, files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        names = ["bin/", "tmp/", "proc/", *sorted({f"{pathlib.PurePath(name).parent}/" for name in files} - {"./"})]
        for name in names:
            entry = tarfile.TarInfo(name.rstrip("/"))
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp/" else 0o755
            tar.addfile(entry)
        for name, source in {"bin/busybox": busybox, **files}.items():
            data = pathlib.Path(source).read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755
            tar.addfile(entry, io.BytesIO(data))
        for name in ("sh", "ln", "sleep", "ls", "echo", "cat", "test", "mkdir"):
            entry = tarfile.TarInfo(f"bin/{name}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(entry)
    return out.getvalue()


def image(path, name, busybox, files, command):
    plain = layer(busybox, files)
    packed = gzip.compress(plain, mtime=0)
    blobs = {}

    def add(data, media):
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(data)}

    configuration = add(json.dumps({
        "architecture": "amd64", "os": "linux", "config": {"Cmd": command, "Env": ["PATH=/bin"], "User": "65532"},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(plain).hexdigest()]},
    }).encode(), "application/vnd.oci.image.config.v1+json")
    manifest = add(json.dumps({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": configuration,
        "layers": [add(packed, "application/vnd.oci.image.layer.v1.tar+gzip")],
    }).encode(), "application/vnd.oci.image.manifest.v1+json")
    index = {"schemaVersion": 2, "manifests": [{**manifest, "annotations": {"io.containerd.image.name": name}}]}
    with tarfile.open(path, "w") as tar:
        for where, data in {
            "oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps(index).encode(),
            **{f"blobs/sha256/{digest}": data for digest, data in blobs.items()},
        }.items():
            entry = tarfile.TarInfo(where)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


def main():
    busybox, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    image(folder / "pause.tar", "example.com/pause:test", busybox, {}, ["/bin/sleep", "2147483647"])
    image(folder / "model.tar", "example.com/model:test", busybox, {"models/model.joblib": MODEL}, ["/bin/sleep", "2147483647"])


main()
