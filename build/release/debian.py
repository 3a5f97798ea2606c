# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The Debian package: the distribution below /usr/lib/nereid, a systemd unit, and the configuration in /etc/nereid."""

import email.utils
import gzip
import hashlib
import io
import os
import re
import shutil
import sys

import files

CONFFILES = {"etc/nereid/nereid.yaml": "nereid.yaml", "etc/logrotate.d/nereid": "nereid.logrotate"}
SCRIPTS = ("postinst", "prerm", "postrm")
# Libraries that the runtime and the natives load; adduser is not needed, for systemd makes the user.
DEPENDS = "libc6 (>= 2.28), libgcc-s1 | libgcc1, libstdc++6, init-system-helpers"
HOME = "usr/lib/nereid"


def debian_version(version):
    """1.2.0-rc1 comes before 1.2.0, which Debian writes with a tilde."""
    if not re.fullmatch(r"[0-9][A-Za-z0-9.+-]*", version):
        sys.exit(f"release: {version} is not a version that Debian knows (expected: a digit, then letters, digits, '.', '+' and '-')")
    return version.replace("-", "~") + "-1"


def build(out, tree, stage, version, platform, time, work):
    """Writes the package into the folder out; returns its name."""
    root = os.path.join(work, "debian")
    home = os.path.join(root, HOME)
    shutil.copytree(stage, home, symlinks=True, ignore=shutil.ignore_patterns("share", "docs", "*.cmd"))
    for name in ("README.md",):
        os.remove(os.path.join(home, name))
    shared = os.path.join(root, "usr/share")
    documents = os.path.join(shared, "doc/nereid")
    shutil.copytree(os.path.join(stage, "docs"), os.path.join(documents, "docs"))
    shutil.copy(os.path.join(stage, "README.md"), documents)
    _write(os.path.join(documents, "copyright"), _copyright(tree))
    _write(os.path.join(documents, "changelog.Debian.gz"), _changelog(version, time), time)
    shutil.copytree(os.path.join(stage, "share/bash-completion"), os.path.join(shared, "bash-completion"))
    os.makedirs(os.path.join(shared, "zsh/vendor-completions"))
    shutil.copy(os.path.join(stage, "share/zsh/nereid.zsh"), os.path.join(shared, "zsh/vendor-completions/_nereid"))
    with open(os.path.join(stage, "share/man/man1/nereid.1"), encoding="utf-8") as page:
        _write(os.path.join(shared, "man/man1/nereid.1.gz"), page.read(), time)
    deploy = os.path.join(tree, "deploy/debian")
    for target, source in {**CONFFILES, "usr/lib/systemd/system/nereid.service": "nereid.service"}.items():
        path = os.path.join(root, target)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copyfile(os.path.join(deploy, source), path)
    os.makedirs(os.path.join(root, "usr/bin"))
    os.symlink("../lib/nereid/bin/nereid", os.path.join(root, "usr/bin/nereid"))
    files.normalize(root, time)

    size = sum(os.lstat(os.path.join(root, name)).st_size for name in files.paths(root)) // 1024
    control = os.path.join(work, "debian-control")
    os.makedirs(control)
    _write(os.path.join(control, "control"), _control(version, platform, size))
    _write(os.path.join(control, "conffiles"), "".join(f"/{name}\n" for name in sorted(CONFFILES)))
    sums = ((name, os.path.join(root, name)) for name in files.paths(root) if name not in CONFFILES)
    _write(
        os.path.join(control, "md5sums"),
        "".join(f"{_md5(path)}  {name}\n" for name, path in sums if os.path.isfile(path) and not os.path.islink(path)),
    )
    for script in SCRIPTS:
        shutil.copyfile(os.path.join(deploy, script), os.path.join(control, script))
        os.chmod(os.path.join(control, script), 0o755)
    files.normalize(control, time)
    name = f"nereid_{debian_version(version)}_{platform.oci}.deb"
    members = [("debian-binary", b"2.0\n"), ("control.tar.gz", _tar_gz(control, time)), ("data.tar.gz", _tar_gz(root, time))]
    with open(os.path.join(out, name), "wb") as package:
        package.write(b"!<arch>\n")
        for member, contents in members:
            package.write(f"{member:<16}{time:<12}{0:<6}{0:<6}{'100644':<8}{len(contents):<10}`\n".encode())
            package.write(contents + (b"\n" if len(contents) % 2 else b""))
    return name


def _tar_gz(root, time):
    out = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=out, mode="wb", compresslevel=files.LEVEL, mtime=0) as packed:
        # dpkg expects the folder itself, and names below it.
        files.tar(packed, root, time, ".")
    return out.getvalue()


def _write(path, text, time=None):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    data = text.encode()
    with open(path, "wb") as file:
        if path.endswith(".gz"):
            with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=files.LEVEL, mtime=time) as packed:
                packed.write(data)
        else:
            file.write(data)


def _md5(path):
    digest = hashlib.md5(usedforsecurity=False)
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def _control(version, platform, size):
    return f"""Package: nereid
Version: {debian_version(version)}
Architecture: {platform.oci}
Maintainer: The Nereid authors <authors@nereid.io>
Installed-Size: {size}
Depends: {DEPENDS}
Recommends: systemd, logrotate
Section: science
Priority: optional
Homepage: https://nereid.io
Description: server of machine-learning models
 One server with the protocols of KServe, NVIDIA Triton and TensorFlow Serving,
 for models of ONNX, scikit-learn, XGBoost, LightGBM, CatBoost, MLflow and more.
 The Java runtime is inside. The service serves /srv/nereid/models on port 8080
 of this machine; /etc/nereid/nereid.yaml has its options.
"""


def _copyright(tree):
    with open(os.path.join(tree, "NOTICE"), encoding="utf-8") as file:
        notice = file.read()
    return (
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\nFiles: *\n"
        "Copyright: the Nereid authors\nLicense: Apache-2.0\n On Debian systems, the text of the licence is in"
        " /usr/share/common-licenses/Apache-2.0.\n\n"
        "Libraries and their licences: /usr/lib/nereid/THIRD-PARTY.txt; the Java runtime: /usr/lib/nereid/runtime/legal\n\n" + notice
    )


def _changelog(version, time):
    return (
        f"nereid ({debian_version(version)}) unstable; urgency=medium\n\n  * CHANGELOG.md of the sources has the changes.\n\n"
        f" -- The Nereid authors <authors@nereid.io>  {email.utils.formatdate(time)}\n"
    )
