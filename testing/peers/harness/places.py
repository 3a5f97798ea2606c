# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Where things are, and the exception for what cannot be had here."""

import os
import pathlib

HERE = pathlib.Path(__file__).resolve().parents[1]
ROOT = HERE.parents[1]
TARGET = pathlib.Path(os.environ.get("PEERS_TARGET", ROOT / "target/peers"))
CORES = len(os.sched_getaffinity(0))


class Unavailable(Exception):
    """A peer or a row that cannot run on this machine; the message is the reason, for the reader of the report."""


def last_line(text):
    """The last line of a program's output that says something, as a reason."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it printed nothing"
