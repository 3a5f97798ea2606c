# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the files of a release from a built tree. Called by build/release.sh, which builds the tree."""

import argparse
import concurrent.futures
import datetime
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time as clock

import debian
import distribution
import files
import foreign
import image
import maven
import platforms
import plugins
import sbom
import wheel

IMAGES = ("image", *plugins.VARIANTS)
PARTS = ("distribution", "aarch64", *IMAGES, "wheel", "debian", "maven")
# Made only when it is named: it fetches 742 MB.
ON_DEMAND = {"image-cuda"}
GENERATED = ("sbom.cdx.json", "THIRD-PARTY.txt")


class Release:
    """One run: what is made and where. Parts are made at the same time, each in folders of its own below work."""

    def __init__(self, given, parts, work):
        self.tree = given.tree
        self.out = given.out
        self.revision = given.revision
        self.parts = parts
        self.work = work
        with open(os.path.join(given.tree, "pom.xml"), encoding="utf-8") as file:
            pom = file.read()
        self.version = re.search(r"<artifactId>nereid</artifactId>\s*<version>([^<]*)</version>", pom).group(1)
        self.created = re.search(r"<project.build.outputTimestamp>([^<]*)<", pom).group(1)
        self.time = int(datetime.datetime.fromisoformat(self.created.replace("Z", "+00:00")).timestamp())
        self.jdk = distribution.Jdk(given.jdk)
        self.name = "nereid-" + self.version
        self.target = os.path.join(given.tree, "apps/nereid/target")
        self.platform = platforms.PLATFORMS["linux-x64"]
        self.plain = os.path.join(work, "plain", self.name)
        self.stage = os.path.join(work, self.platform.name, self.name)
        self.made = []
        self.lock = threading.Lock()

    def report(self, file, begun, more=""):
        with self.lock:
            self.made.append(file)
            size = os.path.getsize(os.path.join(self.out, file)) / 1e6
            print(f"release: {size:7.1f} MB {clock.monotonic() - begun:6.1f} s  {file}{more}", flush=True)

    def archive(self, file, root, begun, more=""):
        """Packs the tree below root, a distribution."""
        files.tar_gz(os.path.join(self.out, file), root, self.time, self.name)
        self.report(file, begun, more)

    def wants(self, *parts):
        return not self.parts.isdisjoint(parts)

    def make(self):
        """Makes all parts; the processors share what does not wait for the distribution of this machine's platform."""
        with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
            running = []

            def start(task, *arguments):
                running.append(pool.submit(task, *arguments))
                return running[-1]

            staged = threading.Event()
            try:
                if self.wants("distribution", "aarch64", "wheel", "debian", *IMAGES):
                    self.check_built()
                    self.copy_plain()
                    if self.wants("aarch64"):
                        start(self.aarch64, staged)
                    if self.wants("distribution"):
                        start(self.archive, self.name + ".tar.gz", self.plain, clock.monotonic())
                    begun = clock.monotonic()
                    distribution.build(self.plain, self.stage, self.platform, self.jdk, self.time)
                    staged.set()
                    self.of_stage(start, begun)
                if self.wants("maven"):
                    start(self.maven)
                for task in concurrent.futures.as_completed(running):
                    task.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
            finally:
                # Nothing may wait for what is not made.
                staged.set()

    def check_built(self):
        built = os.path.join(self.target, "dist", self.name)
        if not os.path.isdir(built):
            sys.exit(f"release: {built} is absent; build it first (./mvnw -DskipTests package)")
        for generated in GENERATED:
            if not os.path.exists(os.path.join(self.target, generated)):
                sys.exit(f"release: {self.target}/{generated} is absent: this was a quick build, or one without a network")
        if os.uname().machine != self.platform.machine:
            sys.exit(f"release: this machine is a {os.uname().machine}; the runtime is linked on a {self.platform.machine}")

    def copy_plain(self):
        shutil.copytree(os.path.join(self.target, "dist", self.name), self.plain, symlinks=True)
        for generated in GENERATED:
            shutil.copy(os.path.join(self.target, generated), self.plain)
        files.normalize(self.plain, self.time)

    def of_stage(self, start, begun):
        """Starts the parts that are made of the distribution of this machine's platform; the longest first."""
        variants = [variant for variant in plugins.VARIANTS if self.wants(variant)]
        layers = {}
        if variants:
            known = plugins.known(self.tree)
            for name in sorted({name for variant in variants for name in plugins.VARIANTS[variant]}, key=lambda name: -known[name]["unpackedBytes"]):
                layers[name] = start(self.plugin, known[name])
        if self.wants(*IMAGES):
            start(self.images, variants, layers)
        if self.wants("distribution"):
            start(self.archive, f"{self.name}-{self.platform.name}.tar.gz", self.stage, begun, f" (runtime: Java {self.jdk.version})")
        if self.wants("debian"):
            start(self.debian)
        if self.wants("wheel"):
            start(self.wheel, self.stage, self.platform)
        if self.wants("distribution"):
            start(self.bare)

    def bare(self):
        begun = clock.monotonic()
        root = os.path.join(self.work, self.platform.name + "-no-runtime", self.name)
        shutil.copytree(self.stage, root, symlinks=True, ignore=shutil.ignore_patterns("runtime", "classes.jsa", "classes.aot"))
        files.normalize(root, self.time)
        self.archive(f"{self.name}-{self.platform.name}-no-runtime.tar.gz", root, begun)
        for generated in GENERATED:
            shutil.copy(os.path.join(self.target, generated), self.out)
            self.report(generated, begun)

    def wheel(self, stage, platform):
        begun = clock.monotonic()
        self.report(wheel.build(self.out, self.tree, stage, self.version, platform, self.time), begun)

    def debian(self):
        begun = clock.monotonic()
        self.report(debian.build(self.out, self.tree, self.stage, self.version, self.platform, self.time, self.work), begun)

    def plugin(self, manifest):
        """Installs a plugin and makes its layer."""
        plugin = plugins.install(manifest, self.stage, image.HOME, self.platform, self.time, self.work)
        return plugin, image.plugin_layer(plugin, self.time)

    def images(self, variants, layers):
        begun = clock.monotonic()
        launcher = os.path.join(self.tree, "deploy/image/launcher.c")
        base = image.Base(self.stage, launcher, self.platform, self.time, self.work)
        debian_release = sbom.debian_release(os.path.join(self.work, "system"))
        for part in [part for part in IMAGES if self.wants(part)]:
            added = [layers[name].result() for name in plugins.VARIANTS.get(part, [])]
            variant = part.partition("-")[2]
            name = f"{self.name}-{part}-{self.platform.oci}"
            size, digest, tag = image.build(
                os.path.join(self.out, name + ".tar"), base, added, self.version, variant, self.platform, self.jdk, self.time, self.created,
                self.revision,
            )  # fmt: skip
            self.report(name + ".tar", begun, f" ({size / 1e6:.0f} MB unpacked)")
            sbom.write(
                os.path.join(self.out, name + ".cdx.json"), os.path.join(self.target, "sbom.cdx.json"), self.stage, base.packages, self.jdk,
                [plugin for plugin, _ in added], self.version, tag, digest, self.platform, self.created, debian_release,
            )  # fmt: skip
            self.report(name + ".cdx.json", begun)
            begun = clock.monotonic()

    def aarch64(self, staged):
        """Makes the distribution and the wheel for Linux on aarch64 on a machine of another kind."""
        begun = clock.monotonic()
        platform = platforms.PLATFORMS["linux-aarch64"]
        why = foreign.missing(platform)
        if why:
            print(f"release: {platform.name} is not made: {why}", flush=True)
            return
        target = os.path.join(self.work, platform.name, self.name)
        distribution.thin(self.plain, target, platform, self.time)
        java = foreign.runtime(platform, os.path.join(target, "runtime"), self.time, self.work)
        # The program's own texts are the same everywhere.
        staged.wait()
        shutil.copytree(os.path.join(self.stage, "share"), os.path.join(target, "share"))
        files.normalize(target, self.time)
        self.archive(f"{self.name}-{platform.name}.tar.gz", target, begun, f" (runtime: Java {java})")
        self.wheel(target, platform)

    def maven(self):
        begun = clock.monotonic()
        repository = os.path.join(self.out, "maven")
        os.makedirs(repository)
        count = maven.build(self.tree, repository, self.version, self.created, self.time, self.jdk, self.work, sign)
        # As it is uploaded: a server makes the metadata itself.
        bundle = os.path.join(self.work, "bundle")
        shutil.copytree(repository, bundle, ignore=shutil.ignore_patterns("maven-metadata.xml*"))
        files.normalize(bundle, self.time)
        file = self.name + "-maven.tar.gz"
        files.tar_gz(os.path.join(self.out, file), bundle, self.time, "")
        self.report(file, begun, f" ({count} modules, also below maven)")


def main():
    parser = argparse.ArgumentParser(prog="build/release.sh", description=__doc__)
    parser.add_argument("--tree", required=True, help="the built tree")
    parser.add_argument("--jdk", required=True, help="the JDK whose runtime goes into the distribution")
    parser.add_argument("--out", required=True, help="the folder of the files")
    parser.add_argument("--revision", default="", help="the commit")
    parser.add_argument("--parts", default=",".join(part for part in PARTS if part not in ON_DEMAND), help="what is made: %(default)s")
    given = parser.parse_args()
    parts = set(given.parts.split(","))
    unknown = sorted(parts - set(PARTS))
    if unknown:
        sys.exit(f"release: there is no part {', '.join(unknown)}; the parts are {', '.join(PARTS)}")

    os.makedirs(given.out, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="nereid-release-") as work:
        release = Release(given, parts, work)
        release.make()

    sums = os.path.join(given.out, "SHA256SUMS")
    with open(sums, "w", encoding="ascii") as out:
        for file in sorted(release.made):
            out.write(f"{files.sha256(os.path.join(given.out, file))}  {file}\n")
    sign(given.out, [*release.made, "SHA256SUMS"])
    if not os.environ.get("NEREID_SIGNING_KEY"):
        print("release: not signed; NEREID_SIGNING_KEY names the key for gpg")


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
