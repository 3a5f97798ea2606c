# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
Compares the files of two builds of one release: python3 build/release/compare.py FOLDER OTHER-FOLDER

Files have the same bytes, or they are archives of the same files but for lib/classes.aot (or .jsa), the archive of classes, which the JVM writes in a
different order each time, and the checksums of it. So does the emulated Java 17 of aarch64 with runtime/lib/server/classes.jsa. Ends with 1 and the names of what differs.
"""

import gzip
import hashlib
import io
import json
import os
import re
import sys
import tarfile
import zipfile

ARCHIVE_OF_CLASSES = re.compile(r"(^|/)lib/classes\.(aot|jsa)$")
EMULATED = re.compile(r"(^|/)runtime/lib/server/classes\.jsa$")
CHECKSUMS = re.compile(r"(^|/)(RECORD|md5sums|SHA256SUMS)$")


def members(name, contents):
    """What is in an archive, by name: mode, time, link and digest; None when it is not an archive."""
    if name.endswith((".tar.gz", ".tgz")):
        return _tar(gzip.decompress(contents))
    if name.endswith(".whl"):
        with zipfile.ZipFile(io.BytesIO(contents)) as archive:
            return {i.filename: (i.external_attr, i.date_time, _digest(archive.read(i))) for i in archive.infolist()}
    if name.endswith(".deb"):
        return _debian(contents)
    if name.endswith(".tar"):
        return _image(contents)
    if name.endswith(".cdx.json"):
        bill = json.loads(contents)
        # The digest of the image, which has the archive of classes.
        for key in ("purl", "bom-ref"):
            bill["metadata"]["component"][key] = re.sub(r"@[^?]*", "", bill["metadata"]["component"][key])
        return {"": _digest(json.dumps(bill).encode())}
    return None


def _digest(contents):
    return hashlib.sha256(contents).hexdigest()


def _tar(contents):
    with tarfile.open(fileobj=io.BytesIO(contents)) as archive:
        return {
            m.name: (m.mode, m.mtime, m.linkname, m.uid, m.gid, _digest(archive.extractfile(m).read()) if m.isreg() else "") for m in archive
        }


def _debian(contents):
    found, place = {}, 8
    while place < len(contents):
        head = contents[place : place + 60].decode()
        name, size = head[:16].strip(), int(head[48:58])
        part = contents[place + 60 : place + 60 + size]
        if name.endswith(".gz"):
            found.update({f"{name}:{inside}": value for inside, value in _tar(gzip.decompress(part)).items()})
        else:
            found[name] = _digest(part)
        place += 60 + size + size % 2
    return found


def _image(contents):
    with tarfile.open(fileobj=io.BytesIO(contents)) as archive:
        [docker] = json.load(archive.extractfile("manifest.json"))
        found = {"tags": docker["RepoTags"]}
        config = json.load(archive.extractfile(docker["Config"]))
        config["rootfs"] = None
        found["config"] = config
        for number, layer in enumerate(docker["Layers"]):
            inside = _tar(gzip.decompress(archive.extractfile(layer).read()))
            changes = any(ARCHIVE_OF_CLASSES.search(name) for name in inside)
            # A layer without the archive of classes has one digest.
            found.update({f"layer {number}:{name}": value for name, value in inside.items()} if changes else {f"layer {number}": layer})
        return found


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    one, other = sys.argv[1:]
    names = [sorted(os.path.relpath(os.path.join(at, f), root) for at, _, fs in os.walk(root) for f in fs) for root in (one, other)]
    differ = sorted(set(names[0]) ^ set(names[1]))
    same, alike = 0, []
    for name in sorted(set(names[0]) & set(names[1])):
        read = []
        for root in (one, other):
            with open(os.path.join(root, name), "rb") as file:
                read.append(file.read())
        if read[0] == read[1]:
            same += 1
            continue
        if CHECKSUMS.search(name):
            continue
        first, second = (members(name, contents) for contents in read)
        if first is None:
            differ.append(name)
            continue
        inside = [n for n in sorted(set(first) | set(second)) if first.get(n) != second.get(n)]
        inside = [n for n in inside if not ARCHIVE_OF_CLASSES.search(n) and not CHECKSUMS.search(n)]
        if "aarch64" in name:
            inside = [n for n in inside if not EMULATED.search(n)]
        if inside:
            differ += [f"{name}: {n}" for n in inside[:20]]
        else:
            alike.append(name)
    print(f"the same bytes twice: {same} files; the same but for the archive of classes: {', '.join(alike) or 'none'}")
    if differ:
        sys.exit("these differ between two builds:\n" + "\n".join("  " + name for name in differ))


if __name__ == "__main__":
    main()
