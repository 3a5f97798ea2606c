# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Archives whose bytes depend on their contents alone: sorted names, one time, no owners."""

import datetime
import gzip
import hashlib
import io
import os
import stat
import tarfile
import zipfile


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
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
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
    with open(path, "wb") as file, gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=9, mtime=0) as packed:
        tar(packed, root, time, prefix)


def jar_without(source, target, excluded):
    """
    Copies a jar without the entries for which excluded(name) holds. Entries keep their order and their times, so that the
    copy of the same jar is always the same.

    Returns the contents of the entries that were left out, by name.
    """
    left_out = {}
    with zipfile.ZipFile(source) as jar, zipfile.ZipFile(target, "w") as copy:
        for info in jar.infolist():
            if excluded(info.filename):
                left_out[info.filename] = info
                continue
            entry = zipfile.ZipInfo(info.filename, info.date_time)
            entry.compress_type = zipfile.ZIP_STORED if info.is_dir() else zipfile.ZIP_DEFLATED
            entry.external_attr = info.external_attr
            copy.writestr(entry, jar.read(info), compresslevel=9)
        return {name: jar.read(info) for name, info in left_out.items() if not info.is_dir()}


def zip_of(path, contents, time):
    """Writes a jar of the files in contents, by name, after a manifest; every entry has the same time."""
    moment = datetime.datetime.fromtimestamp(time, datetime.timezone.utc).timetuple()[:6]
    with zipfile.ZipFile(path, "w") as jar:
        manifest = zipfile.ZipInfo("META-INF/MANIFEST.MF", moment)
        manifest.compress_type = zipfile.ZIP_DEFLATED
        jar.writestr(manifest, "Manifest-Version: 1.0\r\n\r\n", compresslevel=9)
        for name in sorted(contents):
            entry = zipfile.ZipInfo(name, moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            with open(contents[name], "rb") as file:
                jar.writestr(entry, file.read(), compresslevel=9)


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def tar_bytes(root, time, modes=None):
    out = io.BytesIO()
    tar(out, root, time, modes=modes)
    return out.getvalue()
