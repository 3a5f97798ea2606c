# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Where the program of this package is."""

import os
import pathlib

_HOME = pathlib.Path(__file__).resolve().parent / "_distribution"


def version() -> str:
    """The version of the program, as ``nereid version`` prints it."""
    return (_HOME / "VERSION").read_text(encoding="utf-8").strip()


def program() -> str:
    """The path of the program, which runs without Java on the machine."""
    _restore_times()
    return str(_HOME / "bin" / "nereid")


def _restore_times() -> None:
    """
    The archive of classes, by which the program starts in half the time, is valid for jars with the times that it was made
    with, and installers give files the time of the installation. Without the right to change that, it only starts slower.
    """
    time = int((_HOME / "TIME").read_text(encoding="ascii"))
    archive = next((_HOME / "lib").glob("classes.*"), None)
    try:
        if archive is None or archive.stat().st_mtime == time:
            return
        others = [path for path in _HOME.rglob("*") if path.is_file() and path != archive]
        for path in [*others, archive]:
            os.utime(path, (time, time))
    except OSError:
        pass
