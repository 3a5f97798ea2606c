# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""A virtual environment for each peer, from requirements/NAME.txt. It is made once, and again when that file or the Python changes."""

import hashlib
import os
import pathlib
import shutil
import subprocess

from .places import HERE, TARGET, Unavailable, last_line


def python():
    """The Python of the environments: PEERS_PYTHON, else one that all peers have wheels for."""
    named = os.environ.get("PEERS_PYTHON")
    for name in [named] if named else ["python3.11", "python3.12", "python3"]:
        path = shutil.which(name)
        # A version manager's shim may be on the path without the version behind it.
        if path and subprocess.run([path, "-c", "import ensurepip, venv"], capture_output=True).returncode == 0:
            return path
    raise Unavailable(f"no Python with venv: {named or 'python3.11, python3.12, python3'} (Debian's package is python3-venv)")


class Environment:
    """The environment of a name, with the libraries of the tree models or without. Making one that is there already costs nothing."""

    def __init__(self, name, trees, log):
        interpreter = python()
        version = subprocess.run([interpreter, "-V"], capture_output=True, text=True).stdout
        requirements = HERE / "requirements" / f"{name}.txt"
        digest = hashlib.sha256((version + requirements.read_text(encoding="utf-8")).encode()).hexdigest()[:10]
        self.directory = TARGET / "environments" / f"{name}-{digest}"
        if not (self.directory / "complete").exists():
            log(f"installing {name} with pip (once)")
            shutil.rmtree(self.directory, ignore_errors=True)
            run([interpreter, "-m", "venv", self.directory])
            self.install(requirements, "complete")
        if trees:
            more = HERE / "requirements/trees.txt"
            mark = "complete-" + hashlib.sha256(more.read_bytes()).hexdigest()[:10]
            if not (self.directory / mark).exists():
                log(f"installing scikit-learn and XGBoost for {name} (once)")
                self.install(more, mark)
        packages = run([self.program("python"), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
        self.packages = pathlib.Path(packages.strip())

    def install(self, requirements, mark):
        """Installs exactly what a file lists, and marks the environment when that is done."""
        # The lists have all dependencies; --no-deps keeps pip from adding others.
        run([self.program("python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-input", "--no-deps", "-r", requirements])
        (self.directory / mark).touch()

    def program(self, name):
        return str(self.directory / "bin" / name)


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(map(str, command[1:4]))} failed: {last_line(done.stderr or done.stdout)}")
    return done.stdout
