# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
A Maven repository in a folder: of each published module the jar, its sources, its Javadoc and its pom, with checksums.

A module is published unless its pom has maven.deploy.skip. The build leaves the pom to be published, which has neither a parent nor
properties, in target/published-pom.xml, and the class paths beside it.
"""

import datetime
import hashlib
import os
import re
import subprocess
import sys
import xml.etree.ElementTree
import zipfile

import files

GROUP = "io.nereid"
NAMESPACE = "{http://maven.apache.org/POM/4.0.0}"
CHECKSUMS = ("md5", "sha1", "sha256", "sha512")

# What Maven Central asks for.
REQUIRED = ("name", "description", "url", "licenses/license/name", "developers/developer/name", "scm/url", "scm/connection")

# What a jar that brings a logging backend has: embedders choose theirs.
LOGGING_BACKENDS = re.compile(
    r"META-INF/services/org\.slf4j\.spi\.SLF4JServiceProvider|org/slf4j/impl/StaticLoggerBinder\.class|"
    r"org/apache/(log4j/Logger|logging/log4j/core/LoggerContext|commons/logging/LogFactory)\.class"
)


class Module:
    """A published module of the tree."""

    def __init__(self, tree, folder, pom, version):
        self.folder = os.path.join(tree, folder)
        self.artifact = pom.findtext(NAMESPACE + "artifactId")
        self.packaging = pom.findtext(NAMESPACE + "packaging") or "jar"
        self.target = os.path.join(self.folder, "target")
        self.jar = os.path.join(self.target, f"{self.artifact}-{version}.jar") if self.packaging == "jar" else None

    def class_path(self, scope):
        with open(os.path.join(self.target, scope + ".classpath"), encoding="utf-8") as file:
            return [path for path in file.read().strip().split(os.pathsep) if path]


def published(tree, version):
    """The published modules, in the order of the build."""
    found = []
    for entry in parse(os.path.join(tree, "pom.xml")).iterfind(f"{NAMESPACE}modules/{NAMESPACE}module"):
        pom = parse(os.path.join(tree, entry.text, "pom.xml"))
        if pom.findtext(f"{NAMESPACE}properties/{NAMESPACE}maven.deploy.skip") != "true":
            found.append(Module(tree, entry.text, pom, version))
    for module in found:
        needed = [os.path.join(module.target, "published-pom.xml")]
        if module.jar:
            needed += [module.jar, os.path.join(module.target, "compile.classpath"), os.path.join(module.target, "runtime.classpath")]
        for path in needed:
            if not os.path.exists(path):
                sys.exit(f"release: {path} is absent; build it first (./mvnw -DskipTests package)")
    return found


def parse(path):
    return xml.etree.ElementTree.parse(path).getroot()


def build(tree, out, version, created, time, jdk, work, sign):
    """Writes the repository into the folder out and returns the number of modules; sign(folder, names) signs files."""
    modules = published(tree, version)
    names = check_jars(modules)
    check_logging(modules)
    javadocs(modules, names, jdk, work)
    licence = os.path.join(tree, "LICENSE")
    for module in modules:
        folder = os.path.join(out, GROUP.replace(".", "/"), module.artifact, version)
        os.makedirs(folder)
        base = os.path.join(folder, f"{module.artifact}-{version}")
        with open(base + ".pom", "w", encoding="utf-8") as file:
            file.write(pom(module, modules, version))
        if module.jar:
            files.zip_of(base + "-sources.jar", sources(module, licence), time)
            files.zip_of(base + "-javadoc.jar", documentation(module, licence, work), time)
            with open(module.jar, "rb") as source, open(base + ".jar", "wb") as copy:
                copy.write(source.read())
        written = sorted(os.listdir(folder))
        sign(folder, written)
        for name in written:
            checksums(os.path.join(folder, name))
        metadata(out, module, version, created, [name[len(os.path.basename(base)):] for name in written])
    files.normalize(out, time)
    return len(modules)


def pom(module, modules, version):
    """The published pom of a module: that of the build, without what only the build needs."""
    with open(os.path.join(module.target, "published-pom.xml"), encoding="utf-8") as file:
        text = file.read().replace("${project.version}", version)
    text = re.sub(r' child\.[\w.]+="[^"]*"', "", text)
    text = re.sub(r"\s*<dependency>(?:(?!</dependency>).)*<scope>provided</scope>(?:(?!</dependency>).)*</dependency>", "", text, flags=re.S)
    problems = []
    if "${" in text:
        problems.append("it has the property " + re.search(r"\$\{[^}]*\}?", text).group(0))
    root = xml.etree.ElementTree.fromstring(text)
    if root.find(NAMESPACE + "parent") is not None:
        problems.append("it has a parent, which is not published")
    if root.findtext(NAMESPACE + "version") != version:
        problems.append(f"its version is {root.findtext(NAMESPACE + 'version')}, not {version}")
    for path in REQUIRED:
        if not root.findtext("/".join(NAMESPACE + step for step in path.split("/"))):
            problems.append(f"it has no {path}")
    there = {other.artifact for other in modules}
    for dependency in root.iter(NAMESPACE + "dependency"):
        artifact = dependency.findtext(NAMESPACE + "artifactId")
        if dependency.findtext(NAMESPACE + "groupId") == GROUP and artifact not in there:
            problems.append(f"it depends on {artifact}, which is not published")
        if not dependency.findtext(NAMESPACE + "version"):
            problems.append(f"its dependency {artifact} has no version")
        if dependency.findtext(NAMESPACE + "scope") not in (None, "compile", "runtime"):
            problems.append(f"its dependency {artifact} has the scope {dependency.findtext(NAMESPACE + 'scope')}")
    if problems:
        sys.exit(f"release: the pom of {module.artifact} cannot be published: " + "; ".join(problems))
    return text


def check_jars(modules):
    """Checks what the module system of Java asks of the jars. Returns their module names by artifact."""
    names = {}
    packages = {}
    for module in modules:
        if not module.jar:
            continue
        with zipfile.ZipFile(module.jar) as jar:
            manifest = jar.read("META-INF/MANIFEST.MF").decode().replace("\r\n ", "").replace("\n ", "")
            entries = jar.namelist()
        found = re.search(r"^Automatic-Module-Name: (.*?)\s*$", manifest, re.M)
        name = found.group(1) if found else ""
        if not re.fullmatch(r"[a-z]\w*(\.[a-z]\w*)+", name):
            sys.exit(f"release: {module.jar}: its Automatic-Module-Name is '{name}'; the property module.name of its pom has to be its root package")
        if name in names.values():
            sys.exit(f"release: {module.jar}: its Automatic-Module-Name {name} is that of another module")
        names[module.artifact] = name
        for package in {os.path.dirname(entry) for entry in entries if entry.endswith(".class")}:
            other = packages.setdefault(package, module.artifact)
            if other != module.artifact:
                sys.exit(f"release: {module.artifact} and {other} both have the package {package.replace('/', '.')}; a package belongs to one jar")
    return names


def check_logging(modules):
    """Checks that nothing that a user of a module gets is a logging backend."""
    seen = {}
    for module in modules:
        for path in [module.jar, *module.class_path("runtime")] if module.jar else []:
            if path not in seen:
                with zipfile.ZipFile(path) as jar:
                    seen[path] = any(LOGGING_BACKENDS.fullmatch(name) for name in jar.namelist())
            if seen[path]:
                sys.exit(f"release: {module.artifact} brings the logging backend {os.path.basename(path)}; users choose theirs")


def javadocs(modules, names, jdk, work):
    """Makes the Javadoc of all modules below work/javadoc, in a few processes."""
    lines = []
    for module in modules:
        if module.jar:
            source = os.path.join(module.folder, "src/main/java")
            path = os.pathsep.join([os.path.join(module.target, "classes"), *module.class_path("compile")])
            size = sum(os.path.getsize(os.path.join(folder, name)) for folder, _, found in os.walk(source) for name in found)
            lines.append((size, "\t".join([names[module.artifact], source, path, os.path.join(work, "javadoc", module.artifact)])))
    lines.sort(reverse=True)
    count = min(os.cpu_count() or 1, 4)
    running = []
    for i in range(count):
        mine = "\n".join(line for _, line in lines[i::count])
        log = open(os.path.join(work, f"javadoc-{i}.log"), "w+", encoding="utf-8")  # pylint: disable=consider-using-with
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            [os.path.join(jdk.home, "bin/java"), "-Xmx768m", "-XX:+UseSerialGC", os.path.join(os.path.dirname(__file__), "Javadocs.java")],
            stdin=subprocess.PIPE, stdout=log, stderr=log, text=True,
        )  # fmt: skip
        process.stdin.write(mine)
        process.stdin.close()
        running.append((process, log))
    failed = []
    for process, log in running:
        if process.wait() != 0:
            log.seek(0)
            failed.append(log.read()[-3000:])
        log.close()
    if failed:
        sys.exit("release: " + "\n".join(failed))


def sources(module, licence):
    """The files of the sources' jar by name."""
    found = {"META-INF/LICENSE": licence}
    # The generated sources of a jar's classes are read as well, by debuggers.
    for top in ("src/main/java", "src/main/resources", "target/generated-sources/protobuf"):
        root = os.path.join(module.folder, top)
        for name in files.paths(root):
            if os.path.isfile(os.path.join(root, name)):
                found[name] = os.path.join(root, name)
    return found


def documentation(module, licence, work):
    """The files of the Javadoc's jar by name."""
    root = os.path.join(work, "javadoc", module.artifact)
    found = {name: os.path.join(root, name) for name in files.paths(root) if os.path.isfile(os.path.join(root, name))}
    if "index.html" not in found or "allclasses-index.html" not in found:
        sys.exit(f"release: there is no Javadoc of {module.artifact}")
    found["META-INF/LICENSE"] = licence
    return found


def checksums(path):
    with open(path, "rb") as file:
        contents = file.read()
    for algorithm in CHECKSUMS:
        with open(f"{path}.{algorithm}", "w", encoding="ascii") as file:
            file.write(hashlib.new(algorithm, contents).hexdigest())


def metadata(out, module, version, created, suffixes):
    """Writes from what Maven and Gradle learn which versions there are, and of a snapshot which files it has."""
    updated = datetime.datetime.fromisoformat(created.replace("Z", "+00:00")).strftime("%Y%m%d%H%M%S")
    folder = os.path.join(out, GROUP.replace(".", "/"), module.artifact)
    head = f"""<?xml version="1.0" encoding="UTF-8"?>
<metadata modelVersion="1.1.0">
  <groupId>{GROUP}</groupId>
  <artifactId>{module.artifact}</artifactId>
"""
    snapshot = version.endswith("-SNAPSHOT")
    release = "" if snapshot else f"    <release>{version}</release>\n"
    write_metadata(
        folder,
        f"{head}  <versioning>\n    <latest>{version}</latest>\n{release}    <versions>\n      <version>{version}</version>\n    </versions>\n"
        f"    <lastUpdated>{updated}</lastUpdated>\n  </versioning>\n</metadata>\n",
    )
    if not snapshot:
        return
    # Without a timestamp: the files of the snapshot bear the version itself.
    listed = ""
    for suffix in suffixes:
        classifier, extension = re.fullmatch(r"(?:-(\w+))?\.(\w+(?:\.asc)?)", suffix).groups()
        shown = f"        <classifier>{classifier}</classifier>\n" if classifier else ""
        listed += (
            f"      <snapshotVersion>\n{shown}        <extension>{extension}</extension>\n        <value>{version}</value>\n"
            f"        <updated>{updated}</updated>\n      </snapshotVersion>\n"
        )
    write_metadata(
        os.path.join(folder, version),
        f"{head}  <version>{version}</version>\n  <versioning>\n"
        f"    <lastUpdated>{updated}</lastUpdated>\n    <snapshotVersions>\n{listed}    </snapshotVersions>\n  </versioning>\n</metadata>\n",
    )


def write_metadata(folder, text):
    path = os.path.join(folder, "maven-metadata.xml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    checksums(path)
