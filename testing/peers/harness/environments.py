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
    """The Python of the environments: PEERS_PYTHON, else the newest one that all peers have wheels for."""
    named = os.environ.get("PEERS_PYTHON")
    for name in [named] if named else ["python3.11", "python3.12", "python3.10", "python3"]:
        path = shutil.which(name)
        # A version manager's shim may be on the path without the version behind it.
        if path and subprocess.run([path, "-c", "import ensurepip, venv"], capture_output=True).returncode == 0:
            return path
    raise Unavailable(f"no Python with venv: {named or 'python3.11, python3.12, python3.10, python3'} (Debian's package is python3-venv)")


class Environment:
    """The environment of a name. Making one that is there already costs nothing."""

    def __init__(self, name, log):
        requirements = HERE / "requirements" / f"{name}.txt"
        interpreter = python()
        version = subprocess.run([interpreter, "-V"], capture_output=True, text=True).stdout
        digest = hashlib.sha256((version + requirements.read_text(encoding="utf-8")).encode()).hexdigest()[:10]
        self.directory = TARGET / "environments" / f"{name}-{digest}"
        if not (self.directory / "complete").exists():
            log(f"installing {name} with pip (once)")
            self._make(interpreter, requirements)
        packages = subprocess.run([self.program("python"), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True)
        self.packages = pathlib.Path(packages.stdout.strip())

    def _make(self, interpreter, requirements):
        shutil.rmtree(self.directory, ignore_errors=True)
        pip = [self.directory / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-input", "-r", requirements]
        for command in ([interpreter, "-m", "venv", self.directory], pip):
            done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
            if done.returncode != 0:
                raise Unavailable(f"pip could not install it: {last_line(done.stderr or done.stdout)}")
        (self.directory / "complete").touch()

    def program(self, name):
        return str(self.directory / "bin" / name)
