# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Archives whose bytes depend on their contents alone: sorted names, one time, no owners."""

import datetime
import gzip
import hashlib
import os
import stat
import tarfile
import zipfile

# Of gzip and of jars: 9 makes archives that are smaller by 0.3 % in three times the time.
LEVEL = 6


def paths(root):
    """The files, links and folders below root, as names relative to it, sorted."""
    found = []
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in folders + files:
            found.append(os.path.relpath(os.path.join(folder, name), root))
    return sorted(found)


def normalize(root, time):
    """Gives everything below root one time, and the permissions that depend only on whether a file is executable."""
    for name in paths(root):
        path = os.path.join(root, name)
        if os.path.islink(path):
            os.utime(path, (time, time), follow_symlinks=False)
            continue
        if os.path.isdir(path):
            os.chmod(path, 0o755)
        else:
            os.chmod(path, 0o755 if os.stat(path).st_mode & stat.S_IXUSR else 0o644)
        os.utime(path, (time, time))
    os.utime(root, (time, time))


def tar(out, root, time, prefix="", modes=None):
    """Writes the tree below root as a tar archive to the stream out; modes has permissions by name that differ from the files'."""
    modes = modes or {}
    with tarfile.open(fileobj=out, mode="w|", bufsize=1 << 20, format=tarfile.PAX_FORMAT) as archive:
        names = paths(root)
        if prefix:
            archive.addfile(_entry(prefix, root, "", time, modes))
        for name in names:
            entry = _entry(os.path.join(prefix, name), root, name, time, modes)
            if entry.isreg():
                with open(os.path.join(root, name), "rb") as contents:
                    archive.addfile(entry, contents)
            else:
                archive.addfile(entry)


def _entry(shown, root, name, time, modes):
    path = os.path.join(root, name) if name else root
    status = os.lstat(path)
    entry = tarfile.TarInfo(shown)
    entry.mtime = time
    entry.mode = modes.get(name, stat.S_IMODE(status.st_mode))
    if stat.S_ISLNK(status.st_mode):
        entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, os.readlink(path), 0o777
    elif stat.S_ISDIR(status.st_mode):
        entry.type = tarfile.DIRTYPE
    else:
        entry.size = status.st_size
    return entry


def tar_gz(path, root, time, prefix):
    with open(path, "wb") as file, gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=LEVEL, mtime=0) as packed:
        tar(packed, root, time, prefix)


def jar_without(source, target, excluded):
    """
    Copies a jar without the entries for which excluded(name) holds. Entries keep their order and their times, so that the
    copy of the same jar is always the same.

    Returns the names of the files that were left out.
    """
    left_out = []
    with zipfile.ZipFile(source) as jar, zipfile.ZipFile(target, "w") as copy:
        for info in jar.infolist():
            if excluded(info.filename):
                if not info.is_dir():
                    left_out.append(info.filename)
                continue
            entry = zipfile.ZipInfo(info.filename, info.date_time)
            entry.compress_type = zipfile.ZIP_STORED if info.is_dir() else zipfile.ZIP_DEFLATED
            entry.external_attr = info.external_attr
            copy.writestr(entry, jar.read(info), compresslevel=LEVEL)
        return left_out


def zip_of(path, contents, time):
    """Writes a jar of the files in contents, by name, after a manifest; every entry has the same time."""
    moment = datetime.datetime.fromtimestamp(time, datetime.timezone.utc).timetuple()[:6]
    with zipfile.ZipFile(path, "w") as jar:
        manifest = zipfile.ZipInfo("META-INF/MANIFEST.MF", moment)
        manifest.compress_type = zipfile.ZIP_DEFLATED
        jar.writestr(manifest, "Manifest-Version: 1.0\r\n\r\n", compresslevel=LEVEL)
        for name in sorted(contents):
            entry = zipfile.ZipInfo(name, moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            with open(contents[name], "rb") as file:
                jar.writestr(entry, file.read(), compresslevel=LEVEL)


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


class HashingWriter:
    """A stream that passes on what is written, and has its size and its SHA-256."""

    def __init__(self, out):
        self.out = out
        self.size = 0
        self.digest = hashlib.sha256()

    def write(self, data):
        self.digest.update(data)
        self.size += len(data)
        return self.out.write(data)

    def flush(self):
        self.out.flush()

    def name(self):
        """The digest as descriptors of images have it."""
        return "sha256:" + self.digest.hexdigest()
