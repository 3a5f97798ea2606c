#!/usr/bin/env python3
# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the response of model ocr_rec on standard input and prints the line of text. Requires only Python."""
import json
import sys
from pathlib import Path

KEYS = Path(__file__).resolve().parent.parent / "models" / "ocr_rec" / "keys.txt"


def main() -> None:
    answer = json.load(sys.stdin)
    if "error" in answer:
        sys.exit(answer["error"])
    (output,) = answer["outputs"]
    _, steps, classes = output["shape"]
    characters = ["", *KEYS.read_text(encoding="utf-8").split("\n"), " "]
    text, before = "", 0
    for step in range(steps):
        row = output["data"][step * classes : (step + 1) * classes]
        best = max(range(classes), key=row.__getitem__)
        # CTC decoding: equal consecutive classes are one character; class 0 (blank) separates two.
        if best != before:
            text += characters[best]
        before = best
    print(text)


if __name__ == "__main__":
    main()
