# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The Java runtime for a platform that is not this machine's, linked here from the modules in Debian's packages."""

import glob
import os
import re
import shutil
import sys

import distribution
import files

# The OpenJDK of Debian's stable release; jlink must be of the same major version.
MAJOR = 17
JDK = [f"openjdk-{MAJOR}-jdk-headless", f"openjdk-{MAJOR}-jre-headless"]
# What an emulated program is linked with.
SYSTEM = ["libc6", "libgcc-s1", "libstdc++6", "zlib1g"]


def jdk():
    """A JDK with jlink and the packages' major version; None when there is none here."""
    for home in sorted(glob.glob("/usr/lib/jvm/*") + glob.glob("/opt/*")):
        release = os.path.join(home, "release")
        if os.path.exists(os.path.join(home, "bin/jlink")) and os.path.exists(release):
            with open(release, encoding="utf-8") as file:
                if re.search(rf'^JAVA_VERSION="{MAJOR}[."]', file.read(), re.M):
                    return home
    return None


def missing(platform):
    """Why the distribution of the platform cannot be made here; empty when it can."""
    if shutil.which("apt-get") is None:
        return "apt-get is not on the PATH, which fetches the modules of its runtime"
    if jdk() is None:
        return f"no JDK {MAJOR} with jlink is below /usr/lib/jvm or /opt"
    if shutil.which(f"qemu-{platform.machine}-static") is None:
        return f"qemu-{platform.machine}-static is not on the PATH (Debian's package qemu-user-static), which makes the archive of the JDK's classes"
    return ""


def packages(names, platform, root, work):
    """Fetches packages for the platform with a state of apt's own, and unpacks them below root."""
    state = os.path.join(work, "apt-" + platform.debian)
    fetched = os.path.join(state, "packages")
    for folder in ("lists/partial", "cache/archives/partial", "packages"):
        os.makedirs(os.path.join(state, folder), exist_ok=True)
    open(os.path.join(state, "status"), "ab").close()
    options = {
        "APT::Sandbox::User": "root",
        "APT::Architecture": platform.debian,
        "APT::Architectures": platform.debian,
        "Dir::State": state,
        "Dir::State::status": os.path.join(state, "status"),
        "Dir::Cache": os.path.join(state, "cache"),
    }
    apt = ["apt-get", "-q", *[word for name, value in options.items() for word in ("-o", f"{name}={value}")]]
    distribution.run([*apt, "update"])
    distribution.run([*apt, "download", *names], cwd=fetched)
    for package in sorted(os.listdir(fetched)):
        distribution.run(["dpkg-deb", "--extract", os.path.join(fetched, package), root])
    shutil.rmtree(fetched)


def emulator(platform, root):
    """The beginning of a command that runs a program of the platform, with the libraries below root."""
    return [f"qemu-{platform.machine}-static", "-L", root]


def runtime(platform, target, time, work):
    """Links the runtime into target; returns its Java version."""
    root = os.path.join(work, "system-" + platform.debian)
    packages([*JDK, *SYSTEM], platform, root, work)
    [modules] = [m for m in glob.glob(os.path.join(root, "usr/lib/jvm/*/jmods")) if not os.path.islink(os.path.dirname(m))]
    home = jdk()
    if home is None:
        sys.exit(f"release: no JDK {MAJOR} with jlink is below /usr/lib/jvm or /opt")
    distribution.link(
        home, "--module-path", modules, "--add-modules", ",".join(distribution.MODULES), "--strip-java-debug-attributes",
        "--no-header-files", "--no-man-pages", "--compress=2", "--output", target,
    )  # fmt: skip
    files.normalize(target, time)
    # Without it the launcher could not make its own archive at the first start.
    distribution.run([*emulator(platform, root), os.path.join(target, "bin/java"), "-XX:+UseSerialGC", "-Xshare:dump"])
    files.normalize(target, time)
    with open(os.path.join(target, "release"), encoding="utf-8") as file:
        return re.search(r'JAVA_VERSION="(.*)"', file.read()).group(1)
