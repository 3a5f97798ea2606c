# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the files of a release from a built tree. Called by build/release.sh, which builds the tree."""

import argparse
import datetime
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time as clock

import debian
import distribution
import files
import foreign
import image
import maven
import platforms
import wheel

PARTS = ("distribution", "aarch64", "image", "wheel", "debian", "maven")


def main():
    parser = argparse.ArgumentParser(prog="build/release.sh", description=__doc__)
    parser.add_argument("--tree", required=True, help="the built tree")
    parser.add_argument("--jdk", required=True, help="the JDK whose runtime goes into the distribution")
    parser.add_argument("--out", required=True, help="the folder of the files")
    parser.add_argument("--revision", default="", help="the commit")
    parser.add_argument("--parts", default=",".join(PARTS), help="what is made: %(default)s")
    given = parser.parse_args()
    parts = given.parts.split(",")
    unknown = sorted(set(parts) - set(PARTS))
    if unknown:
        sys.exit(f"release: there is no part {', '.join(unknown)}; the parts are {', '.join(PARTS)}")

    with open(os.path.join(given.tree, "pom.xml"), encoding="utf-8") as file:
        pom = file.read()
    version = re.search(r"<artifactId>nereid</artifactId>\s*<version>([^<]*)</version>", pom).group(1)
    created = re.search(r"<project.build.outputTimestamp>([^<]*)<", pom).group(1)
    time = int(datetime.datetime.fromisoformat(created.replace("Z", "+00:00")).timestamp())
    jdk = distribution.Jdk(given.jdk)
    name = "nereid-" + version
    os.makedirs(given.out, exist_ok=True)
    made = []

    def report(file, begun, more=""):
        made.append(file)
        size = os.path.getsize(os.path.join(given.out, file)) / 1e6
        print(f"release: {size:7.1f} MB {clock.monotonic() - begun:6.1f} s  {file}{more}", flush=True)

    with tempfile.TemporaryDirectory(prefix="nereid-release-") as work:
        if {"distribution", "aarch64", "image", "wheel", "debian"} & set(parts):
            program(given, parts, name, version, created, time, jdk, work, report)
        if "maven" in parts:
            begun = clock.monotonic()
            repository = os.path.join(given.out, "maven")
            os.makedirs(repository)
            count = maven.build(given.tree, repository, version, created, time, jdk, work, sign)
            # As it is uploaded: a server makes the metadata itself.
            bundle = os.path.join(work, "bundle")
            shutil.copytree(repository, bundle, ignore=shutil.ignore_patterns("maven-metadata.xml*"))
            files.normalize(bundle, time)
            file = name + "-maven.tar.gz"
            files.tar_gz(os.path.join(given.out, file), bundle, time, "")
            report(file, begun, f" ({count} modules, also below maven)")

    sums = os.path.join(given.out, "SHA256SUMS")
    with open(sums, "w", encoding="ascii") as out:
        for file in sorted(made):
            out.write(f"{files.sha256(os.path.join(given.out, file))}  {file}\n")
    sign(given.out, [*made, "SHA256SUMS"])
    if not os.environ.get("NEREID_SIGNING_KEY"):
        print("release: not signed; NEREID_SIGNING_KEY names the key for gpg")


def program(given, parts, name, version, created, time, jdk, work, report):
    """Makes the distributions, the packages and the image, from the folder that the build of apps/nereid leaves."""
    target = os.path.join(given.tree, "apps/nereid/target")
    built = os.path.join(target, "dist", name)
    if not os.path.isdir(built):
        sys.exit(f"release: {built} is absent; build it first (./mvnw -DskipTests package)")
    for generated in ("sbom.cdx.json", "THIRD-PARTY.txt"):
        if not os.path.exists(os.path.join(target, generated)):
            sys.exit(f"release: {target}/{generated} is absent: this was a quick build, or one without a network")

    begun = clock.monotonic()
    plain = os.path.join(work, "plain", name)
    shutil.copytree(built, plain, symlinks=True)
    for generated in ("sbom.cdx.json", "THIRD-PARTY.txt"):
        shutil.copy(os.path.join(target, generated), plain)
    files.normalize(plain, time)
    if "distribution" in parts:
        files.tar_gz(os.path.join(given.out, name + ".tar.gz"), plain, time, name)
        report(name + ".tar.gz", begun)

    platform = platforms.PLATFORMS["linux-x64"]
    if os.uname().machine != platform.machine:
        sys.exit(f"release: this machine is a {os.uname().machine}; the runtime is linked on a {platform.machine}")
    begun = clock.monotonic()
    stage = os.path.join(work, platform.name, name)
    distribution.build(plain, stage, platform, jdk, time)
    if "distribution" in parts:
        file = f"{name}-{platform.name}.tar.gz"
        files.tar_gz(os.path.join(given.out, file), stage, time, name)
        report(file, begun, f" (runtime: Java {jdk.version})")
        begun = clock.monotonic()
        bare = os.path.join(work, platform.name + "-no-runtime", name)
        shutil.copytree(stage, bare, symlinks=True, ignore=shutil.ignore_patterns("runtime", "classes.jsa"))
        files.normalize(bare, time)
        file = f"{name}-{platform.name}-no-runtime.tar.gz"
        files.tar_gz(os.path.join(given.out, file), bare, time, name)
        report(file, begun)
        for generated in ("sbom.cdx.json", "THIRD-PARTY.txt"):
            shutil.copy(os.path.join(target, generated), given.out)
            report(generated, begun)
    if "aarch64" in parts:
        other(given, name, time, stage, plain, work, report)
    if "wheel" in parts:
        begun = clock.monotonic()
        report(wheel.build(given.out, given.tree, stage, version, platform, time), begun)
    if "debian" in parts:
        begun = clock.monotonic()
        report(debian.build(given.out, given.tree, stage, version, platform, time, work), begun)
    if "image" in parts:
        begun = clock.monotonic()
        file = f"{name}-image-{platform.oci}.tar"
        launcher = os.path.join(given.tree, "deploy/image/launcher.c")
        size = image.build(
            os.path.join(given.out, file), stage, launcher, version, platform, jdk, time, created, given.revision, work
        )
        report(file, begun, f" ({size / 1e6:.0f} MB unpacked)")


def other(given, name, time, stage, plain, work, report):
    """Makes the distribution for Linux on aarch64 on a machine of another kind."""
    begun = clock.monotonic()
    platform = platforms.PLATFORMS["linux-aarch64"]
    why = foreign.missing(platform)
    if why:
        print(f"release: {platform.name} is not made: {why}")
        return
    target = os.path.join(work, platform.name, name)
    distribution.thin(plain, target, platform, time)
    java = foreign.runtime(platform, os.path.join(target, "runtime"), time, work)
    # The program's own texts are the same everywhere.
    shutil.copytree(os.path.join(stage, "share"), os.path.join(target, "share"))
    files.normalize(target, time)
    file = f"{name}-{platform.name}.tar.gz"
    files.tar_gz(os.path.join(given.out, file), target, time, name)
    report(file, begun, f" (runtime: Java {java})")


def sign(folder, names):
    """Signs the files when NEREID_SIGNING_KEY names a key that gpg knows."""
    key = os.environ.get("NEREID_SIGNING_KEY")
    if not key:
        return
    for name in names:
        path = os.path.join(folder, name)
        if os.path.exists(path + ".asc"):
            os.remove(path + ".asc")
        result = subprocess.run(["gpg", "--batch", "--local-user", key, "--armor", "--detach-sign", path], check=False)
        if result.returncode != 0:
            sys.exit(f"release: gpg could not sign {name} with the key {key}")


if __name__ == "__main__":
    main()
