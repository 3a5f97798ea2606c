# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
An OCI image of a distribution, made without a container engine: the operating system's files come from Debian's packages.

The file is an image layout of the Open Containers Initiative (oci-layout, index.json, blobs) that has the manifest.json of
"docker save" as well, so that docker load, podman load and skopeo copy oci-archive: take it.
"""

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile

import distribution
import files

# The C and C++ libraries, certificates and time zones; libz is what the Java runtime and native libraries may be linked with.
PACKAGES = ["base-files", "ca-certificates", "libc6", "libgcc-s1", "libstdc++6", "tzdata", "zlib1g"]

# Of the packages: not of use to a program that runs alone.
UNUSED = re.compile(
    r"usr/share/doc/(?!.*/copyright$)|usr/share/doc/.*/examples/|usr/share/(man|lintian|locale|bug|info|doc-base|base-files|gcc|gdb|perl5)/|"
    r"usr/lib/[^/]*-linux-gnu/(gconv|audit)/|usr/share/zoneinfo/(right|posix)/|usr/s?bin/|s?bin/|"
    r"etc/(ca-certificates|update-motd\.d|default|ld\.so\.conf\.d)/|var/(backups|cache|local|log|mail|opt|spool)/"
)

HOME = "opt/nereid"
USER = 65532


def operating_system(root, platform, time):
    """Unpacks the packages below root. Returns their names with versions."""
    packages = root + ".packages"
    shutil.rmtree(packages, ignore_errors=True)
    os.makedirs(packages)
    suffix = "" if platform.machine == os.uname().machine else ":" + platform.debian
    # As the user who runs this, who may not be the one that apt changes to when it is root.
    distribution.run(
        ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", *[name + suffix for name in PACKAGES]], cwd=packages
    )
    versions = {}
    for name in sorted(os.listdir(packages)):
        package = os.path.join(packages, name)
        field = distribution.run(["dpkg-deb", "--field", package, "Package", "Version"])
        fields = dict(line.split(": ", 1) for line in field.splitlines())
        versions[fields["Package"]] = fields["Version"]
        distribution.run(["dpkg-deb", "--extract", package, root])
        # Where scanners for vulnerabilities look in images without a package manager.
        control = distribution.run(["dpkg-deb", "--field", package])
        write(root, "var/lib/dpkg/status.d/" + fields["Package"], control)
    shutil.rmtree(packages)
    for name in reversed(files.paths(root)):
        path = os.path.join(root, name)
        if UNUSED.match(name) and not os.path.isdir(path):
            os.remove(path)
        elif os.path.isdir(path) and not os.path.islink(path) and UNUSED.match(name + "/") and not os.listdir(path):
            os.rmdir(path)
    certificates(root)
    write(root, "etc/passwd", f"root:x:0:0:root:/:/sbin/nologin\nnonroot:x:{USER}:{USER}:nonroot:/home/nonroot:/sbin/nologin\n")
    write(root, "etc/group", f"root:x:0:\nnonroot:x:{USER}:\n")
    write(root, "etc/nsswitch.conf", "hosts: files dns\n")
    for folder in ("tmp", "home/nonroot", "proc", "sys", "dev", "models"):
        os.makedirs(os.path.join(root, folder), exist_ok=True)
    files.normalize(root, time)
    return versions


def certificates(root):
    """Joins the certificates into one file, as the package's own script does when it is installed."""
    source = os.path.join(root, "usr/share/ca-certificates")
    joined = []
    for name in files.paths(source):
        if name.endswith(".crt"):
            with open(os.path.join(source, name), encoding="ascii") as certificate:
                joined.append(certificate.read().rstrip("\n") + "\n")
    shutil.rmtree(source)
    write(root, "etc/ssl/certs/ca-certificates.crt", "".join(joined))


def write(root, name, text):
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def launcher(source, target, platform):
    """Compiles the launcher, which is there in the place of the distribution's script: the image has no shell."""
    here = platform.machine == os.uname().machine
    compiler = os.environ.get("CC") or ("gcc" if here else f"{platform.machine}-linux-gnu-gcc")
    if shutil.which(compiler) is None:
        sys.exit(f"release: {compiler} is not on the PATH; the image's launcher is compiled with it (apt install gcc libc6-dev)")
    distribution.run([compiler, "-std=c17", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-s", "-Wl,--build-id=none", "-o", target, source])


def options(stage, program):
    """The JVM's arguments of a program up to its main class, as the distribution's script has them, for the image's folder."""
    printed = distribution.run(
        [os.path.join(stage, "bin", "nereid"), program], env={"PATH": os.environ["PATH"], "NEREID_LAUNCH": "print", "HOME": "/"}
    )
    arguments = [line.replace(stage, "/" + HOME) for line in printed.splitlines()][1:]
    arguments = arguments[: arguments.index("io.nereid.app.Main") + 1]
    if program == "serve":
        # The script chooses by the machine's cores; the collector that threads share does as well on one.
        arguments = ["-XX:+UseParallelGC" if a == "-XX:+UseSerialGC" else a for a in arguments]
    return arguments


def application(layer, stage, source, platform, time):
    """The distribution without what only people read; returns nothing, fills the folder layer."""
    home = os.path.join(layer, HOME)
    shutil.copytree(stage, home, symlinks=True, ignore=shutil.ignore_patterns("examples", "docs", "share", "runtime", "bin"))
    os.makedirs(os.path.join(home, "bin"))
    launcher(source, os.path.join(home, "bin", "nereid"), platform)
    os.symlink("nereid", os.path.join(home, "bin", "tensorflow_model_server"))
    for program in ("serve", "operator", "gateway"):
        write(home, f"lib/launch/{program}", "\n".join(options(stage, program)) + "\n")
    os.makedirs(os.path.join(layer, "usr/local/bin"))
    for name in ("nereid", "tensorflow_model_server"):
        os.symlink(f"/{HOME}/bin/{name}", os.path.join(layer, "usr/local/bin", name))
    files.normalize(layer, time)


class Layout:
    """The blobs of an image, and the file that has them all."""

    def __init__(self, time):
        self.time = time
        self.blobs = {}

    def blob(self, contents):
        digest = "sha256:" + hashlib.sha256(contents).hexdigest()
        self.blobs[digest] = contents
        return digest

    def json(self, value):
        return self.blob(json.dumps(value, indent=1, sort_keys=True).encode())

    def layer(self, root, modes=None):
        """Returns the descriptor of a layer and the digest of its unpacked form."""
        plain = files.tar_bytes(root, self.time, modes)
        packed = gzip.compress(plain, 9, mtime=0)
        descriptor = {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": self.blob(packed), "size": len(packed)}
        return descriptor, "sha256:" + hashlib.sha256(plain).hexdigest()

    def write(self, path, index, docker):
        contents = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": _json(index), "manifest.json": _json(docker)}
        for digest, blob in self.blobs.items():
            contents["blobs/sha256/" + digest.split(":")[1]] = blob
        with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
            for folder in ("blobs", "blobs/sha256"):
                entry = tarfile.TarInfo(folder)
                entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, self.time
                archive.addfile(entry)
            for name in sorted(contents):
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode, entry.mtime = len(contents[name]), 0o644, self.time
                archive.addfile(entry, io.BytesIO(contents[name]))


def _json(value):
    return json.dumps(value, indent=1, sort_keys=True).encode()


def build(path, stage, source, version, platform, jdk, time, created, revision, work):
    """Writes the image of a distribution with a runtime (the folder stage) as one file."""
    roots = [os.path.join(work, name) for name in ("system", "runtime", "nereid")]
    for root in roots:
        shutil.rmtree(root, ignore_errors=True)
        os.makedirs(root)
    system, java, nereid = roots
    packages = operating_system(system, platform, time)
    shutil.copytree(os.path.join(stage, "runtime"), os.path.join(java, HOME, "runtime"), symlinks=True)
    files.normalize(java, time)
    application(nereid, stage, source, platform, time)

    layout = Layout(time)
    made = [layout.layer(system, {"tmp": 0o1777, "home/nonroot": 0o700}), layout.layer(java), layout.layer(nereid)]
    labels = {
        "org.opencontainers.image.title": "nereid",
        "org.opencontainers.image.description": "A model server: KServe V1 and V2, Triton, TensorFlow Serving; operator and gateway for Kubernetes.",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.created": created,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.revision": revision,
        "io.nereid.java": f"{jdk.vendor} {jdk.version}",
        "io.nereid.packages": " ".join(f"{name}={packages[name]}" for name in sorted(packages)),
    }
    config = {
        "architecture": platform.oci,
        "os": "linux",
        "created": created,
        "config": {
            "User": f"{USER}:{USER}",
            "Env": [
                "PATH=/usr/local/bin:/opt/nereid/bin",
                "HOME=/tmp",
                "LANG=C.UTF-8",
                "XDG_CACHE_HOME=/tmp",
                "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt",
                "NEREID_HOST=0.0.0.0",
            ],
            "Entrypoint": ["nereid"],
            "Cmd": ["serve", "/models"],
            "WorkingDir": "/",
            "ExposedPorts": {"8080/tcp": {}},
            "StopSignal": "SIGTERM",
            "Labels": labels,
            "Healthcheck": {
                "Test": ["CMD", "nereid", "health"],
                "Interval": 30_000_000_000,
                "Timeout": 10_000_000_000,
                "StartPeriod": 60_000_000_000,
                "Retries": 3,
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [diff for _, diff in made]},
        "history": [{"created": created, "created_by": by} for by in ("packages of Debian", "Java runtime", "nereid")],
    }
    digest = layout.json(config)
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest, "size": len(layout.blobs[digest])},
        "layers": [descriptor for descriptor, _ in made],
        "annotations": labels,
    }
    manifest_digest = layout.json(manifest)
    tag = re.sub(r"[^A-Za-z0-9_.-]", "-", version)
    index = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [
            {
                "mediaType": manifest["mediaType"],
                "digest": manifest_digest,
                "size": len(layout.blobs[manifest_digest]),
                "platform": {"architecture": platform.oci, "os": "linux"},
                "annotations": {"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": f"docker.io/library/nereid:{tag}"},
            }
        ],
    }
    docker = [
        {
            "Config": "blobs/sha256/" + digest.split(":")[1],
            "RepoTags": [f"nereid:{tag}"],
            "Layers": ["blobs/sha256/" + descriptor["digest"].split(":")[1] for descriptor, _ in made],
        }
    ]
    layout.write(path, index, docker)
    return sum(_size(root) for root in roots)


def _size(root):
    return sum(os.lstat(os.path.join(root, name)).st_size for name in files.paths(root) if not os.path.isdir(os.path.join(root, name)))
