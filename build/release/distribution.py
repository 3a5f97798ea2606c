# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The distribution for one platform: its native libraries as files, a runtime inside, the class-data archive made."""

import fnmatch
import glob
import os
import re
import shutil
import subprocess
import sys
import zipfile

import files
import platforms

# What the server, the operator and the plugins use, and what their libraries look for. jdk.crypto.ec is empty from Java 22 on.
MODULES = [
    "java.base",
    "java.logging",
    "java.management",
    "java.naming",
    "java.net.http",
    "java.security.jgss",
    "java.sql",
    "java.xml",
    "jdk.charsets",
    "jdk.crypto.ec",
    "jdk.httpserver",
    "jdk.jcmd",
    "jdk.jfr",
    "jdk.management",
    "jdk.management.agent",
    "jdk.net",
    "jdk.unsupported",
    "jdk.zipfs",
]

# Example models that only the archive for all platforms has, so that the others stay small.
LARGE_EXAMPLES = ["ocr_rec"]


class Jdk:
    def __init__(self, home):
        self.home = home
        with open(os.path.join(home, "release"), encoding="utf-8") as release:
            values = dict(re.findall(r'^(\w+)="(.*)"$', release.read(), re.M))
        self.version = values["JAVA_VERSION"]
        self.major = int(self.version.split(".")[0])
        self.vendor = values.get("IMPLEMENTOR", "unknown")

    def run(self, tool, *arguments):
        run([os.path.join(self.home, "bin", tool), *arguments])


# As in bin/nereid: where the libraries are looked for that the training run needs.
NATIVE_PATHS = ("nereid.native.path", "onnxruntime.native.path", "jna.boot.library.path", "java.library.path")


def run(command, **options):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    if result.returncode != 0:
        sys.exit(f"release: {' '.join(map(str, command))[:300]} ended with {result.returncode}:\n{result.stdout[-3000:]}")
    return result.stdout


def access(major):
    """The launcher's options about native code, which archives of classes depend on."""
    options = ["--enable-native-access=ALL-UNNAMED"] if major >= 22 else []
    return options + (["--sun-misc-unsafe-memory-access=allow"] if major >= 23 else [])


def link(home, *arguments):
    """Runs jlink of the JDK in the folder home, in a process whose small sets have the same order each time."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "LinkRuntime.java")
    command = [os.path.join(home, "bin/java"), "-XX:TieredStopAtLevel=1", program, *arguments]
    for _ in range(64):
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if result.returncode == 0:
            return
        if result.returncode != 3:
            break
    sys.exit(f"release: jlink of {home} ended with {result.returncode}:\n{result.stdout[-3000:]}")


def runtime(jdk, target, time):
    """Links a Java runtime for this machine with the modules of the distribution, and the archive of the JDK's own classes."""
    compress = "zip-6" if jdk.major >= 21 else "2"
    modules = MODULES if jdk.major < 22 else [m for m in MODULES if m != "jdk.crypto.ec"]
    link(
        jdk.home, "--add-modules", ",".join(modules), "--strip-debug", "--no-header-files", "--no-man-pages",
        # The tzdata and locales of English alone would lose formats of other languages: all are kept.
        f"--compress={compress}", "--output", target,
    )  # fmt: skip
    # Times of the modules are part of the key of the archives made below.
    files.normalize(target, time)
    run([os.path.join(target, "bin", "java"), *access(jdk.major), "-Xshare:dump"])
    files.normalize(target, time)


def ahead_of_time(jdk):
    """Whether the archive of classes is an ahead-of-time cache."""
    return jdk.major >= 25


def strip(path, platform):
    """Takes symbols of the debugger out of a native library. Says so when the tool for the platform is absent."""
    here = os.uname().machine == platform.machine
    tool = "strip" if here else f"{platform.machine}-linux-gnu-strip"
    if shutil.which(tool) is None:
        print(f"release: {tool} is not on the PATH; {os.path.basename(path)} keeps its symbols", file=sys.stderr)
        return
    run([tool, "--strip-unneeded", path])


def libraries(stage, platform):
    """Moves the native libraries of the platform out of the jars of lib into lib/native; those of other platforms go away."""
    target = os.path.join(stage, "lib", "native")
    os.makedirs(target)
    for jar in sorted(glob.glob(os.path.join(stage, "lib", "*.jar"))):
        wanted = platform.natives(jar)
        if wanted is None:
            continue
        thinner = jar + ".new"
        removed = files.jar_without(jar, thinner, platforms.native)
        with zipfile.ZipFile(jar) as opened:
            for name in fnmatch.filter(removed, wanted):
                path = os.path.join(target, os.path.basename(name))
                with open(path, "wb") as file:
                    file.write(opened.read(name))
                os.chmod(path, 0o755)
                strip(path, platform)
        if os.path.basename(jar).startswith("netty-transport-native-epoll-"):
            # Nothing but the library is in it.
            os.remove(thinner)
            os.remove(jar)
        else:
            os.replace(thinner, jar)
    missing = [name for name in platforms.LIBRARIES if not _has(target, name)]
    if missing:
        sys.exit(f"release: no native library for {platform.name} of {', '.join(missing)}")


def webjars(stage):
    """Takes out of the web console's libraries what a browser does not load: other builds, maps of the sources, types."""
    for jar in sorted(glob.glob(os.path.join(stage, "lib", "lit-html-*.jar")) + glob.glob(os.path.join(stage, "lib", "uplot-*.jar"))):
        files.jar_without(jar, jar + ".new", lambda name: re.search(r"/(development|node)/|\.map$|\.d\.ts$|\.(iife|iife\.min|cjs)\.js$", name))
        os.replace(jar + ".new", jar)


def _has(folder, library):
    word = library.split("-")[0].replace("netty", "epoll").replace("jna", "jnidispatch")
    return any(word in name for name in os.listdir(folder))


def compiler(stage):
    """The compiler's thresholds of the launcher: an ahead-of-time cache starts with what was compiled in its training."""
    environment = {"PATH": os.environ["PATH"], "HOME": os.path.dirname(stage), "NEREID_CDS": "off", "NEREID_LAUNCH": "print"}
    return [flag for flag in run([os.path.join(stage, "bin", "nereid"), "serve"], env=environment).splitlines() if flag.startswith("-XX:Tier")]


def archive(stage, jdk, time):
    """
    Makes the archive of classes, with the runtime inside. A start with an ahead-of-time cache loads all classes of it: it is for the server
    alone. The operator has the runtime's own archive then, of the JDK's classes.
    """
    files.normalize(stage, time)
    ahead = ahead_of_time(jdk)
    # In the order of the launcher's class path.
    jars = [os.path.join(stage, "lib", name) for name in sorted(os.listdir(os.path.join(stage, "lib"))) if name.endswith(".jar")]
    if not ahead:
        kubernetes = os.path.join(stage, "lib", "kubernetes")
        jars += [os.path.join(kubernetes, name) for name in sorted(os.listdir(kubernetes)) if name.endswith(".jar")]
    made = os.path.join(stage, "lib", "classes.aot" if ahead else "classes.jsa")
    into = "-XX:AOTCacheOutput" if ahead else "-XX:ArchiveClassesAtExit"
    native = os.path.join(stage, "lib", "native")
    run(
        [
            os.path.join(stage, "runtime", "bin", "java"), *access(jdk.major), "-XX:+UseSerialGC", *compiler(stage), f"{into}={made}.new",
            "-Dnereid.home=" + stage, *(f"-D{name}={native}" for name in NATIVE_PATHS), "-cp", ":".join(jars), "io.nereid.app.Main", "cds", "serve" if ahead else "all",
        ],
        env={"HOME": os.path.dirname(stage), "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    os.replace(made + ".new", made)
    files.normalize(stage, time)


def share(stage):
    """Writes the completion scripts, the manual page and the configuration file's schema, which the program makes of its own options."""
    for command, name in (
        (["completion", "bash"], "bash-completion/completions/nereid"),
        (["completion", "zsh"], "zsh/nereid.zsh"),
        (["man-page"], "man/man1/nereid.1"),
        (["config", "schema"], "nereid.schema.json"),
    ):
        path = os.path.join(stage, "share", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        text = run(
            [os.path.join(stage, "bin", "nereid"), *command],
            env={"PATH": os.environ["PATH"], "HOME": os.path.dirname(stage), "NEREID_CDS": "off", "COLUMNS": "80"},
        )
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def build(dist, stage, platform, jdk, time):
    """Makes the distribution of this machine's platform in the folder stage."""
    thin(dist, stage, platform, time)
    runtime(jdk, os.path.join(stage, "runtime"), time)
    share(stage)
    archive(stage, jdk, time)
    return stage


def thin(dist, stage, platform, time):
    """Copies what all distributions have into the folder stage, with the native libraries of one platform."""
    shutil.rmtree(stage, ignore_errors=True)
    shutil.copytree(dist, stage, symlinks=True)
    for name in LARGE_EXAMPLES:
        shutil.rmtree(os.path.join(stage, "examples", "models", name))
        os.remove(os.path.join(stage, "examples", "requests", name + ".json"))
    libraries(stage, platform)
    webjars(stage)
    files.normalize(stage, time)
