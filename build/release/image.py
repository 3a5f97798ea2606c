# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
An OCI image of a distribution, made without a container engine: the operating system's files come from Debian's packages.

The file is an image layout of the Open Containers Initiative (oci-layout, index.json, blobs) that has the manifest.json of
"docker save" as well, so that docker load, podman load and skopeo copy oci-archive: take it.

Images with plugins have the layers of the image without them, and one more for each plugin: nodes and registries keep each layer once.
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
import plugins

# The C and C++ libraries, certificates and time zones; libz is what the Java runtime and native libraries may be linked with.
PACKAGES = ["base-files", "ca-certificates", "libc6", "libgcc-s1", "libstdc++6", "tzdata", "zlib1g"]
# Where libgcc and libstdc++ have the text of their licence.
LICENCE_PACKAGE = re.compile(r"\bgcc-\d+-base\b")

# Of the packages: not of use to a program that runs alone.
UNUSED = re.compile(
    r"usr/share/doc/(?!.*/copyright$)|usr/share/doc/.*/examples/|usr/share/(man|lintian|locale|bug|info|doc-base|base-files|gcc|gdb|perl5)/|"
    # Vectors of math functions, old name services, debuggers: none of the images' libraries is linked with them.
    r"(usr/)?lib/[^/]*-linux-gnu/lib(mvec|BrokenLocale|c_malloc_debug|memusage|nsl|nss_compat|nss_hesiod|pcprofile|thread_db)\.so|"
    r"usr/lib/[^/]*-linux-gnu/(gconv|audit)/|usr/share/zoneinfo/(right|posix)/|usr/s?bin/|s?bin/|"
    r"etc/(ca-certificates|update-motd\.d|default|ld\.so\.conf\.d)/|var/(backups|cache|local|log|mail|opt|spool)/"
)

HOME = "opt/nereid"
USER = 65532


def operating_system(root, platform, time):
    """Unpacks the packages below root. Returns the control fields of each by its name."""
    packages = root + ".packages"
    shutil.rmtree(packages, ignore_errors=True)
    os.makedirs(packages)
    control = {}

    def add(names):
        suffix = "" if platform.machine == os.uname().machine else ":" + platform.debian
        before = set(os.listdir(packages))
        # As the user who runs this, who may not be the one that apt changes to when it is root.
        distribution.run(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", *[name + suffix for name in names]], cwd=packages)
        for name in sorted(set(os.listdir(packages)) - before):
            package = os.path.join(packages, name)
            text = distribution.run(["dpkg-deb", "--field", package])
            fields = dict(re.findall(r"^([\w-]+): (.*)$", text, re.M))
            control[fields["Package"]] = fields
            distribution.run(["dpkg-deb", "--extract", package, root])
            # Where scanners for vulnerabilities look in images without a package manager.
            write(root, "var/lib/dpkg/status.d/" + fields["Package"], text)

    add(PACKAGES)
    add(sorted(set(LICENCE_PACKAGE.findall(control["libgcc-s1"].get("Depends", "")))))
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
    return control


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


class Layer:
    """A layer of an image, compressed in a file: its descriptor, the digest of its unpacked form, what it is, and the bytes of its files."""

    def __init__(self, root, path, time, what, modes=None):
        with open(path, "wb") as file:
            packed = files.HashingWriter(file)
            with gzip.GzipFile(filename="", fileobj=packed, mode="wb", compresslevel=files.LEVEL, mtime=0) as stream:
                plain = files.HashingWriter(stream)
                files.tar(plain, root, time, modes=modes)
        self.path = path
        self.what = what
        self.diff = plain.name()
        self.descriptor = {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": packed.name(), "size": packed.size}
        self.unpacked = sum(
            os.lstat(os.path.join(root, name)).st_size for name in files.paths(root) if not os.path.isdir(os.path.join(root, name))
        )


class Layout:
    """The blobs of an image, and the file that has them all."""

    def __init__(self, time, layers):
        self.time = time
        self.layers = layers
        self.blobs = {}

    def json(self, media, value):
        """Adds a blob; returns its descriptor."""
        contents = _json(value)
        digest = "sha256:" + hashlib.sha256(contents).hexdigest()
        self.blobs[digest] = contents
        return {"mediaType": media, "digest": digest, "size": len(contents)}

    def write(self, path, index, docker):
        contents = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": _json(index), "manifest.json": _json(docker)}
        contents.update({_place(digest): blob for digest, blob in self.blobs.items()})
        contents.update({_place(layer.descriptor["digest"]): layer for layer in self.layers})
        with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
            for folder in ("blobs", "blobs/sha256"):
                entry = tarfile.TarInfo(folder)
                entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, self.time
                archive.addfile(entry)
            for name in sorted(contents):
                entry = tarfile.TarInfo(name)
                entry.mode, entry.mtime = 0o644, self.time
                if isinstance(contents[name], Layer):
                    entry.size = contents[name].descriptor["size"]
                    with open(contents[name].path, "rb") as blob:
                        archive.addfile(entry, blob)
                else:
                    entry.size = len(contents[name])
                    archive.addfile(entry, io.BytesIO(contents[name]))


def _json(value):
    return json.dumps(value, indent=1, sort_keys=True).encode()


def _place(digest):
    return "blobs/sha256/" + digest.split(":")[1]


class Base:
    """What all images have: the layers of the operating system, the Java runtime and the program, and the packages of the first."""

    def __init__(self, stage, source, platform, time, work):
        roots = [os.path.join(work, name) for name in ("system", "runtime", "nereid")]
        for root in roots:
            shutil.rmtree(root, ignore_errors=True)
            os.makedirs(root)
        system, java, nereid = roots
        self.packages = operating_system(system, platform, time)
        shutil.copytree(os.path.join(stage, "runtime"), os.path.join(java, HOME, "runtime"), symlinks=True)
        files.normalize(java, time)
        application(nereid, stage, source, platform, time)
        modes = {"tmp": 0o1777, "home/nonroot": 0o700}
        self.layers = [
            Layer(system, system + ".tar.gz", time, "packages of Debian", modes),
            Layer(java, java + ".tar.gz", time, "Java runtime"),
            Layer(nereid, nereid + ".tar.gz", time, "nereid"),
        ]


def plugin_layer(plugin, time):
    return Layer(plugin.root, plugin.root + ".tar.gz", time, "plugin " + plugin.name)


def build(path, base, added, version, variant, platform, jdk, time, created, revision):
    """
    Writes an image as one file: the layers of base, and those in added, pairs of a plugin and its layer.

    Returns the bytes of its files when unpacked, and the digest and the tag by which registries know it.
    """
    layers = base.layers + [layer for _, layer in added]
    layout = Layout(time, layers)
    labels = {
        "org.opencontainers.image.title": "nereid",
        "org.opencontainers.image.description": "A model server: KServe V1 and V2, Triton, TensorFlow Serving; operator and gateway for Kubernetes.",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.created": created,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.revision": revision,
        "io.nereid.java": f"{jdk.vendor} {jdk.version}",
        "io.nereid.packages": " ".join(f"{name}={base.packages[name]['Version']}" for name in sorted(base.packages)),
    }
    if added:
        labels["io.nereid.plugins"] = " ".join(plugin.name for plugin, _ in added)
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
                *plugins.ENVIRONMENT.get(variant, []),
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
        "rootfs": {"type": "layers", "diff_ids": [layer.diff for layer in layers]},
        "history": [{"created": created, "created_by": layer.what} for layer in layers],
    }
    described = layout.json("application/vnd.oci.image.config.v1+json", config)
    manifest = layout.json(
        "application/vnd.oci.image.manifest.v1+json",
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": described,
            "layers": [layer.descriptor for layer in layers],
            "annotations": labels,
        },
    )
    tag = re.sub(r"[^A-Za-z0-9_.-]", "-", version) + (f"-{variant}" if variant else "")
    index = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [
            {
                **manifest,
                "platform": {"architecture": platform.oci, "os": "linux"},
                "annotations": {"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": f"docker.io/library/nereid:{tag}"},
            }
        ],
    }
    docker = [
        {
            "Config": _place(described["digest"]),
            "RepoTags": [f"nereid:{tag}"],
            "Layers": [_place(layer.descriptor["digest"]) for layer in layers],
        }
    ]
    layout.write(path, index, docker)
    return sum(layer.unpacked for layer in layers), manifest["digest"], tag
