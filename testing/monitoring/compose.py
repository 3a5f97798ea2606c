#!/usr/bin/env python3
# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
Checks deploy/compose/compose.yaml against the schema of the Compose specification, and that the files that it mounts are there:

    python3 testing/monitoring/compose.py SCHEMA

SCHEMA is compose_spec.json, which the package docker-compose 1.29.2 of PyPI has. Needs the packages PyYAML and jsonschema.
"""

import json
import pathlib
import sys

import jsonschema
import yaml

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "deploy/compose"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    schema = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
    problems = [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in jsonschema.Draft7Validator(schema).iter_errors(compose)]
    for name, service in compose["services"].items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            # What begins with a variable is the user's, a plain name is a volume.
            if source.startswith(".") and not (FOLDER / source).exists():
                problems.append(f"services/{name}: {source} does not exist")
            if "/" not in source and source not in compose["volumes"] and not source.startswith("$"):
                problems.append(f"services/{name}: {source} is not a volume of the file")
    for file in (FOLDER / "grafana").rglob("*.yaml"):
        yaml.safe_load(file.read_text(encoding="utf-8"))
    if problems:
        sys.exit("compose.yaml: " + "\n".join(problems))
    print(f"compose.yaml holds the schema of the Compose specification, with {len(compose['services'])} services")


if __name__ == "__main__":
    main()
