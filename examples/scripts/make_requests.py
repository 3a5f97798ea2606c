#!/usr/bin/env python3
# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Creates the sample requests in ../requests. Requires Pillow for the picture of the text line."""
import json
import math
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

REQUESTS = Path(__file__).resolve().parent.parent / "requests"


def tensor(name, datatype, shape, data):
    return {"name": name, "datatype": datatype, "shape": shape, "data": data}


def put(name, request) -> None:
    text = json.dumps(request, separators=(",", ":")) if name == "ocr_rec" else json.dumps(request, indent=2)
    # Arrays of numbers are easier to read on one line.
    if name != "ocr_rec":
        out, depth = [], 0
        for line in text.split("\n"):
            bare = line.strip()
            if depth and out:
                out[-1] += ("" if out[-1].endswith("[") or bare[0] == "]" else " ") + bare
            else:
                out.append(line)
            if bare.endswith("[") and '"inputs"' not in bare and '"outputs"' not in bare:
                depth += 1
            elif bare.startswith("]") and depth:
                depth -= 1
        text = "\n".join(out)
    (REQUESTS / f"{name}.json").write_text(text + "\n")


def line_of_text(words):
    """A black and white picture, 48 high, of a line of text, three equal channels, ink -1 and paper 1."""
    font = ImageFont.load_default(36)
    left, _, right, _ = font.getbbox(words)
    picture = Image.new("L", (right - left + 12, 48), 255)
    ImageDraw.Draw(picture).text((6 - left, 24), words, font=font, fill=0, anchor="lm")
    pixels = [-1 if p < 128 else 1 for p in picture.tobytes()]
    return [1, 3, 48, picture.width], pixels * 3


def main() -> None:
    REQUESTS.mkdir(exist_ok=True)
    put(
        "simple",
        {
            "id": "1",
            "inputs": [
                tensor("INPUT0", "INT32", [1, 16], list(range(1, 17))),
                tensor("INPUT1", "INT32", [1, 16], [1] * 16),
            ],
        },
    )
    flowers = [[5.1, 3.5, 1.4, 0.2], [6.0, 2.9, 4.5, 1.5], [6.9, 3.1, 5.4, 2.1]]
    texts = ["A man is eating food.", "Someone is having a meal.", "The stock market fell today."]
    put("sentence", {"inputs": [tensor("TEXT", "BYTES", [3, 1], texts)]})
    # A quiet hum, the first chunk of a stream: 64 samples of context (zeros), then 512 samples.
    hum = [0] * 64 + [round(0.01 * math.sin(i * math.tau * 50 / 16000), 5) for i in range(512)]
    put(
        "vad",
        {
            "parameters": {"sequence_id": 1, "sequence_start": True},
            "inputs": [tensor("input", "FP32", [1, 576], hum), tensor("sr", "INT64", [1], [16000])],
        },
    )
    put("iris", {"inputs": [tensor("input", "FP32", [3, 4], flowers)]})
    put(
        "iris_classes",
        {
            "inputs": [tensor("input", "FP32", [3, 4], flowers)],
            "outputs": [{"name": "probabilities", "parameters": {"classification": 1}}],
        },
    )
    put("iris_v1", {"instances": flowers})
    ids = [101, 1037, 2158, 2003, 5983, 2833, 1012, 102]  # "A man is eating food."
    put(
        "minilm",
        {
            "inputs": [
                tensor("input_ids", "INT64", [1, 8], ids),
                tensor("attention_mask", "INT64", [1, 8], [1] * 8),
                tensor("token_type_ids", "INT64", [1, 8], [0] * 8),
            ]
        },
    )
    shape, data = line_of_text("Nereid 2026")
    put("ocr_rec", {"inputs": [tensor("x", "FP32", shape, data)]})
    for path in sorted(REQUESTS.iterdir()):
        print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
