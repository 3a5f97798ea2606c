# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
Uses the Maven repository of a release as a new user would: builds and runs the projects of examples/embedding with it.

Libraries of others come from the user's local repository, as far as they are there. The modules of Nereid cannot: the projects see a
local repository without them.
"""

import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.request
import xml.etree.ElementTree
import zipfile

import newcomer

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NAMESPACE = "{http://maven.apache.org/POM/4.0.0}"
PROVIDER = "META-INF/services/org.slf4j.spi.SLF4JServiceProvider"
ANSWER = "a flower of 5.1 x 3.5 x 1.4 x 0.2 cm is setosa\n"

# What the documents have, and the checks run with other ports and folders.
START = "java -jar examples/embedding/spring-boot/target/flowers.jar --models=examples/models"
CLASSIFY = """curl -s localhost:8080/classify -H 'content-type: application/json' -d '{"measures": [5.1, 3.5, 1.4, 0.2]}'"""

# A user's dependency on everything that there is.
EVERYTHING = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>com.example</groupId>
  <artifactId>everything</artifactId>
  <version>1.0</version>
  <repositories><repository><id>nereid</id><url>{repository}</url></repository></repositories>
  <dependencyManagement><dependencies><dependency>
    <groupId>io.nereid</groupId><artifactId>nereid-bom</artifactId><version>{version}</version><type>pom</type><scope>import</scope>
  </dependency></dependencies></dependencyManagement>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""


class Maven:
    """Maven as a user has it, with a local repository of its own."""

    def __init__(self, work):
        self.repository = os.path.join(work, "local-repository")
        self.tail = os.path.join(work, "libraries")
        without(os.path.expanduser("~/.m2/repository"), self.tail, ("io", "nereid"))

    def run(self, project, *arguments):
        """Returns the status and what was printed."""
        result = subprocess.run(
            [os.path.join(ROOT, "mvnw"), "-B", "-ntp", "-q", "-f", os.path.join(project, "pom.xml"), f"-Dmaven.repo.local={self.repository}",
             f"-Dmaven.repo.local.tail={self.tail}", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=400,
        )  # fmt: skip
        return result.returncode, result.stdout


def without(source, target, path):
    """Makes target look like source without what is at path in it: folders on the way are new, the rest are links."""
    os.makedirs(target)
    if not os.path.isdir(source):
        return
    for name in os.listdir(source):
        if name != path[0]:
            os.symlink(os.path.join(source, name), os.path.join(target, name))
        elif len(path) > 1:
            without(os.path.join(source, name), os.path.join(target, name), path[1:])


def repository(release, work, check, skip):
    folder = os.path.join(os.path.abspath(release), "maven")
    [version] = [n for n in os.listdir(os.path.join(folder, "io/nereid/nereid-bom")) if not n.startswith("maven-metadata")]
    bom = xml.etree.ElementTree.parse(os.path.join(folder, f"io/nereid/nereid-bom/{version}/nereid-bom-{version}.pom"))
    modules = [d.findtext(NAMESPACE + "artifactId") for d in bom.iter(NAMESPACE + "dependency")]
    check(sorted([*modules, "nereid-bom"]) == sorted(os.listdir(os.path.join(folder, "io/nereid"))),
          f"the BOM names the {len(modules)} modules of the repository and no others")  # fmt: skip
    wrong = list(unlike(folder))
    check(not wrong, f"the checksums of the repository {wrong[:3] or ''}")
    wrong = [m for m in modules if not complete(os.path.join(folder, "io/nereid", m, version, f"{m}-{version}"))]
    check(not wrong, f"each module has its jar, sources and Javadoc {wrong or ''}")

    url = "file://" + folder
    maven = Maven(work)
    resolved(maven, url, version, modules, work, check)
    projects = os.path.join(work, "embedding")
    shutil.copytree(os.path.join(ROOT, "examples/embedding"), projects, ignore=shutil.ignore_patterns("target", "build", ".gradle"))
    models = os.path.join(ROOT, "examples/models")
    with_maven(maven, os.path.join(projects, "maven"), url, version, models, check)
    for name, habit in (("kafka-streams", "Kafka Streams"), ("flink", "Flink")):
        builds(maven, projects, name, habit, url, version, models, check)
    with_spring_boot(maven, os.path.join(projects, "spring-boot"), url, version, models, check)
    with_gradle(os.path.join(projects, "gradle"), url, version, models, check, skip)


def unlike(folder):
    """The checksum files that are not those of their files, and the files that lack one."""
    for where, _, names in os.walk(folder):
        for name in names:
            algorithm = name.rpartition(".")[2]
            if algorithm in ("md5", "sha1", "sha256", "sha512"):
                with open(os.path.join(where, name), encoding="ascii") as file:
                    written = file.read()
                summed = name[: -len(algorithm) - 1]
                if summed not in names:
                    yield name
                    continue
                with open(os.path.join(where, summed), "rb") as file:
                    if hashlib.new(algorithm, file.read()).hexdigest() != written:
                        yield name
            elif algorithm != "asc" and name + ".sha1" not in names:
                yield name


def complete(base):
    """Whether there are a jar, and jars with the source and with the Javadoc page of a class of it."""
    if not all(os.path.exists(base + suffix) for suffix in (".jar", "-sources.jar", "-javadoc.jar", ".pom")):
        return False
    with zipfile.ZipFile(base + ".jar") as jar, zipfile.ZipFile(base + "-sources.jar") as sources, zipfile.ZipFile(base + "-javadoc.jar") as pages:
        classes = {n[: -len(".class")] for n in jar.namelist() if n.startswith("io/nereid/") and n.endswith(".class") and "$" not in n}
        written = {n[: -len(".java")] for n in sources.namelist() if n.endswith(".java")}
        shown = {n[: -len(".html")] for n in pages.namelist()}
    return bool(classes & shown) and not [c for c in classes - written if not c.endswith("package-info")]


def resolved(maven, url, version, modules, work, check):
    """Everything at once: each pom can be read, its libraries are there, and none of them is a logging backend."""
    project = os.path.join(work, "everything")
    os.makedirs(project)
    dependencies = "\n".join(f"    <dependency><groupId>io.nereid</groupId><artifactId>{m}</artifactId></dependency>" for m in modules)
    with open(os.path.join(project, "pom.xml"), "w", encoding="utf-8") as file:
        file.write(EVERYTHING.format(repository=url, version=version, dependencies=dependencies))
    listed = os.path.join(project, "class-path")
    status, said = maven.run(
        project, "org.apache.maven.plugins:maven-dependency-plugin:3.11.0:build-classpath", "-DincludeScope=runtime", f"-Dmdep.outputFile={listed}"
    )
    if status != 0:
        check(False, f"all modules resolve: {said[-1500:]}")
        return
    with open(listed, encoding="utf-8") as file:
        jars = file.read().strip().split(os.pathsep)
    ours = [j for j in jars if os.path.join("io", "nereid") + os.sep in j]
    check(len(ours) == len(modules) and all(j.startswith(maven.repository) for j in ours),
          f"all {len(modules)} modules resolve from the repository alone, with {len(jars) - len(ours)} libraries")  # fmt: skip
    check(not providers(jars), f"none of them brings a logging backend {providers(jars) or ''}")


def providers(jars):
    found = []
    for path in jars:
        with zipfile.ZipFile(path) as jar:
            if PROVIDER in jar.namelist():
                found.append(os.path.basename(path))
    return found


def with_maven(maven, project, url, version, models, check):
    begun = time.monotonic()
    status, said = maven.run(project, "package", f"-Dnereid.repository={url}", f"-Dnereid.version={version}", f"-Dmodels={models}")
    check(status == 0, f"examples/embedding/maven builds, and its tests pass {'' if status == 0 else said[-2000:]}")
    if status != 0:
        return
    target = os.path.join(project, "target")
    jars = [os.path.join(target, "lib", name) for name in sorted(os.listdir(os.path.join(target, "lib")))]
    chosen = providers(jars)
    check(len(chosen) == 1 and chosen[0].startswith("slf4j-simple-"), f"the logging backend is the program's: {chosen}")
    said = java("-jar", os.path.join(target, "iris.jar"), models)
    commands = [package("maven"), "java -jar examples/embedding/maven/target/iris.jar examples/models"]
    newcomer.ran("Maven", commands, time.monotonic() - begun, said.stdout)
    check(said.stdout == ANSWER and "SLF4J" not in said.stderr, f"the program runs: {said.stdout.strip()} {said.stderr[-500:]}")
    # Each jar a module: two with one name, or with one package, would end Java at once.
    modular = ("-p", os.path.join(target, "lib"), "--add-modules", "ALL-MODULE-PATH")
    said = java(*modular, "-cp", os.path.join(target, "classes"), "com.example.iris.Main", models)
    check(said.stdout == ANSWER, f"it runs with the libraries on the module path {said.stderr[-500:] if said.stdout != ANSWER else ''}")
    bare = os.pathsep.join([os.path.join(target, "classes"), *[j for j in jars if os.path.basename(j) not in chosen]])
    said = java("-cp", bare, "com.example.iris.Main", models)
    check(said.stdout == ANSWER and "No SLF4J providers were found" in said.stderr, f"it runs without a logging backend {said.stderr[-500:]}")


def package(name):
    """The command of the documents that the checks run with a local repository and a copy of the project."""
    return f"./mvnw -f examples/embedding/{name}/pom.xml package"


def builds(maven, projects, name, habit, url, version, models, check):
    """A program whose tests show that it works."""
    begun = time.monotonic()
    status, said = maven.run(
        os.path.join(projects, name), "package", f"-Dnereid.repository={url}", f"-Dnereid.version={version}", f"-Dmodels={models}"
    )
    check(status == 0, f"examples/embedding/{name} builds, and its tests pass {'' if status == 0 else said[-2000:]}")
    if status == 0:
        newcomer.ran(habit, [package(name)], time.monotonic() - begun, "its tests pass")


def with_spring_boot(maven, project, url, version, models, check):
    begun = time.monotonic()
    status, said = maven.run(project, "package", f"-Dnereid.repository={url}", f"-Dnereid.version={version}", f"-Dmodels={models}")
    check(status == 0, f"examples/embedding/spring-boot builds, and its tests pass {'' if status == 0 else said[-2000:]}")
    if status != 0:
        return
    # From the executable jar, whose libraries are jars inside a jar.
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = os.path.join(project, "target", "application.log")
    with open(log, "w", encoding="utf-8") as file:
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            [java_command(), "-jar", os.path.join(project, "target/flowers.jar"), f"--models={models}", "--server.address=127.0.0.1",
             f"--server.port={port}"],
            stdout=file, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        answer = classified(process, f"http://127.0.0.1:{port}")
        newcomer.ran("Spring Boot", [package("spring-boot"), START, CLASSIFY], time.monotonic() - begun, answer)
        process.terminate()
        process.wait(60)
    finally:
        process.kill()
        process.wait()
    with open(log, encoding="utf-8") as file:
        said = file.read()
    check("setosa" in answer, f"the application answers: {answer} {said[-1500:] if 'setosa' not in answer else ''}")


def classified(process, url):
    """The answer of the application to a flower, once it is ready."""
    deadline = time.monotonic() + 90
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url + "/actuator/health/readiness", timeout=10):
                break
        except OSError:
            time.sleep(0.2)
    flower = json.dumps({"measures": [5.1, 3.5, 1.4, 0.2]}).encode()
    request = urllib.request.Request(url + "/classify", flower, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.read().decode()
    except OSError as e:
        return f"no answer: {e}"


def java_command():
    home = os.environ.get("JAVA_HOME")
    return os.path.join(home, "bin/java") if home else "java"


def java(*arguments):
    return subprocess.run([java_command(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=120)


def with_gradle(project, url, version, models, check, skip):
    if shutil.which("gradle") is None:
        skip("examples/embedding/gradle: gradle is not on the PATH")
        newcomer.skipped("Gradle", "gradle is not on the PATH")
        return
    shown = subprocess.run(["gradle", "--version"], stdout=subprocess.PIPE, text=True, check=False, timeout=120).stdout
    found = re.search(r"^Gradle (\d+)\.\S+", shown, re.M)
    if found is None or int(found.group(1)) < 8:
        skip(f"examples/embedding/gradle: it needs Gradle 8, not {found.group(0) if found else 'an unknown version'}")
        newcomer.skipped("Gradle", "it needs Gradle 8")
        return
    begun = time.monotonic()
    result = subprocess.run(
        ["gradle", "--no-daemon", "--quiet", "-p", project, f"-Pnereid.repository={url}", f"-Pnereid.version={version}", f"-Pmodels={models}",
         "build", "run"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=600,
    )  # fmt: skip
    newcomer.ran("Gradle", ["gradle -p examples/embedding/gradle build run"], time.monotonic() - begun, result.stdout)
    check(result.returncode == 0 and ANSWER in result.stdout, f"examples/embedding/gradle builds and runs ({found.group(0)}) {result.stdout[-1500:]}")
