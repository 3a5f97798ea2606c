# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The software bill of materials of an image, CycloneDX JSON: Debian's packages, the Java runtime, the libraries, the plugins' libraries."""

import glob
import json
import os
import re
import sys
import urllib.parse

import files

# Debian's copyright files are mostly prose: this is what they say of the files that the image has of each package.
LICENCES = {
    r"base-files": "GPL-2.0-or-later",
    r"ca-certificates": "GPL-2.0-or-later AND MPL-2.0",
    r"gcc-\d+-base": "GPL-3.0-or-later WITH GCC-exception-3.1",
    r"libc6": "LGPL-2.1-or-later",
    r"libgcc-s1": "GPL-3.0-or-later WITH GCC-exception-3.1",
    r"libstdc\+\+6": "GPL-3.0-or-later WITH GCC-exception-3.1",
    r"tzdata": None,
    r"zlib1g": "Zlib",
}
PUBLIC_DOMAIN = {"license": {"name": "public domain"}}
JAVA = "GPL-2.0-only WITH Classpath-exception-2.0"


def write(path, libraries, stage, control, jdk, plugins, version, tag, digest, platform, created, debian):
    """
    Writes the bill of materials of an image.

    libraries is the bill of materials of the distribution in the folder stage; control has the fields of Debian's packages by name; debian is the release
    of Debian, such as 12; tag and digest are those of the image.
    """
    with open(libraries, encoding="utf-8") as file:
        distribution = json.load(file)
    components = [distribution["metadata"]["component"], *distribution["components"]]
    known = {component.get("purl") for component in components}
    modules = [_module(jar, version) for jar in sorted(glob.glob(os.path.join(stage, "lib/plugins/*/*.jar")))]
    components += [module for module in modules if module["purl"] not in known]
    components += [_package(control[name], debian) for name in sorted(control)]
    components.append(_runtime(jdk))
    # Two plugins may have one library.
    added = {}
    for plugin in plugins:
        for artifact in plugin.artifacts:
            component = _artifact(artifact, plugin)
            first = added.setdefault(component["purl"], component)
            if first is not component:
                first["properties"] += component["properties"]
    components += [added[purl] for purl in sorted(added)]
    image = f"pkg:oci/nereid@{urllib.parse.quote(digest, safe='')}?arch={platform.oci}&tag={tag}"
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": created,
            "lifecycles": [{"phase": "build"}],
            "component": {
                "type": "container",
                "bom-ref": image,
                "name": "nereid",
                "version": version,
                "purl": image,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": components,
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(bill, file, indent=1)
        file.write("\n")


def debian_release(root):
    """The release of Debian whose files are below root."""
    with open(os.path.join(root, "usr/lib/os-release"), encoding="utf-8") as file:
        return dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', file.read(), re.M)).get("VERSION_ID", "sid")


def _module(jar, version):
    """The part of the distribution that calls the libraries of a plugin."""
    name = os.path.basename(jar)[: -len(f"-{version}.jar")]
    purl = f"pkg:maven/io.nereid/{name}@{version}?type=jar"
    return {
        "type": "library",
        "bom-ref": purl,
        "group": "io.nereid",
        "name": name,
        "version": version,
        "scope": "required",
        "hashes": [{"alg": "SHA-256", "content": files.sha256(jar)}],
        "licenses": [{"license": {"id": "Apache-2.0"}}],
        "purl": purl,
    }


def _package(fields, debian):
    name, version = fields["Package"], fields["Version"]
    known = [licence for pattern, licence in LICENCES.items() if re.fullmatch(pattern, name)]
    if not known:
        sys.exit(f"release: the licence of Debian's package {name} is not in LICENCES of build/release/sbom.py")
    qualifiers = f"arch={fields['Architecture']}&distro=debian-{debian}"
    source = fields.get("Source", name).split()[0]
    if source != name:
        qualifiers += "&upstream=" + urllib.parse.quote(source, safe="")
    purl = f"pkg:deb/debian/{urllib.parse.quote(name, safe='')}@{urllib.parse.quote(version, safe='')}?{qualifiers}"
    return {
        "type": "library",
        "bom-ref": purl,
        "supplier": {"name": "Debian"},
        "name": name,
        "version": version,
        "scope": "required",
        "licenses": [{"expression": known[0]} if known[0] else PUBLIC_DOMAIN],
        "purl": purl,
        "properties": [{"name": "nereid:copyright", "value": f"/usr/share/doc/{name}/copyright"}],
    }


def _runtime(jdk):
    purl = f"pkg:generic/openjdk@{urllib.parse.quote(jdk.version, safe='')}"
    return {
        "type": "framework",
        "bom-ref": purl,
        "supplier": {"name": jdk.vendor},
        "name": "openjdk",
        "version": jdk.version,
        "scope": "required",
        "licenses": [{"expression": JAVA}],
        "purl": purl,
    }


def _artifact(artifact, plugin):
    classifier = artifact.get("classifier", "")
    purl = f"pkg:maven/{artifact['group']}/{artifact['artifact']}@{artifact['version']}?"
    purl += (f"classifier={classifier}&" if classifier else "") + "type=jar"
    component = {
        "type": "library",
        "bom-ref": purl,
        "group": artifact["group"],
        "name": artifact["artifact"],
        "version": artifact["version"],
        "scope": "required",
        "hashes": [{"alg": "SHA-256", "content": artifact["sha256"]}],
        "purl": purl,
        "properties": [{"name": "nereid:plugin", "value": plugin.name}],
    }
    if "," not in plugin.licence:
        component["licenses"] = [{"license": {"id": plugin.licence}}]
    else:
        # Of one or of both: plugins.json says it of the plugin as a whole.
        component["properties"].append({"name": "nereid:plugin-licences", "value": plugin.licence})
    name = artifact["artifact"] + "-" + artifact["version"] + (f"-{classifier}" if classifier else "") + ".jar"
    if name in plugin.thinned:
        component["pedigree"] = {"notes": "Its native libraries lie as files in the folder native of the plugin, without symbols for debuggers."}
    return component
