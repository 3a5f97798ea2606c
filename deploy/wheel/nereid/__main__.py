# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The command ``nereid``: this process becomes the program."""

import os
import sys

from ._program import program


def main() -> None:
    path = program()
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    main()
