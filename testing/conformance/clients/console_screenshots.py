# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of docs/CONSOLE.md: a server with some load, photographed. In testing/conformance/clients, with selenium: python console_screenshots.py"""
import json
import pathlib
import shutil
import sys
import tempfile
import threading

from browser import Browser
from server import EXAMPLES, ROOT, Server

MOST_BYTES = 150_000
PICTURES = {"overview": "overview", "model/iris": "model", "try/iris": "try"}


def load(server, stop):
    flower = {"inputs": [{"name": "input", "shape": [2, 4], "datatype": "FP32", "data": [5.1, 3.5, 1.4, 0.2, 6.7, 3.0, 5.2, 2.3]}]}
    numbers = {"inputs": [{"name": f"INPUT{i}", "shape": [1, 16], "datatype": "INT32", "data": [1] * 16} for i in (0, 1)]}
    while not stop.is_set():
        server.ask("POST", "/v2/models/iris/infer", json.dumps(flower))
        server.ask("POST", "/v2/models/simple/infer", json.dumps(numbers))
        stop.wait(0.01)


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    for name in ("simple", "iris", "pool", "vad", "tokenizer"):
        if (EXAMPLES / name).exists():
            shutil.copytree(EXAMPLES / name, folder / name)
    server = Server(folder)
    stop = threading.Event()
    threads = [threading.Thread(target=load, args=(server, stop), daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    out = ROOT / "docs" / "images"
    window = Browser(f"http://{server.base}", out, width=1100, height=760)
    try:
        window.open("overview")
        stop.wait(40)
        for page, name in PICTURES.items():
            window.open(page)
            window.find("main h1")
            if name == "try":
                window.set("#input-0", "[[5.1, 3.5, 1.4, 0.2]]")
                window.click("Predict")
                window.find("pre[data-output]")
            stop.wait(12 if name == "model" else 2)
            window.shot(f"console-{name}")
            size = (out / f"console-{name}.png").stat().st_size
            print(f"{name}: {size} bytes")
            if size > MOST_BYTES:
                sys.exit(f"console_screenshots: {name} has more than {MOST_BYTES} bytes")
    finally:
        stop.set()
        window.close()
        server.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
