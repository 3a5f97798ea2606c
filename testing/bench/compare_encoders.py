# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares servers of one encoder: VENV/bin/python compare_encoders.py [--seconds 10] [--rounds 5] [--folder FOLDER].

    python3 -m venv VENV && VENV/bin/pip install torch transformers fastapi uvicorn
    VENV/bin/pip install KSERVE/python/kserve KSERVE/python/storage accelerate && export PYTHONPATH=KSERVE/python/huggingfaceserver

The second line is for KServe's server, from a clone of its repository; it imports the types of vLLM, of the version in its pyproject.toml, and without it a name is missing
in huggingfaceserver/vllm/utils.py (EngineClient).

Texts per second over KServe's V1 protocol, from the folder that make_encoder.py makes: Nereid, and KServe's Hugging Face server if the package
huggingfaceserver is installed, else a server of FastAPI and transformers, which is named as such. Each server has processor 0 and one
thread for the model, the client has the others; the servers alternate round by round. The bar is 3 times the texts per second of the other.
"""
import argparse
import http.client
import importlib.util
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
NAME = "encoder"
BAR = 3
CONNECTIONS = 8


def transformers_server(folder, port):
    """FastAPI and transformers, with the answers of KServe's server for embeddings."""
    import torch
    import transformers
    import uvicorn
    from fastapi import FastAPI, Request

    torch.set_num_threads(1)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    app = FastAPI()

    @app.post(f"/v1/models/{NAME}:predict")
    async def predict(request: Request):
        texts = (await request.json())["instances"]
        tokens = tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
        with torch.no_grad():
            states = model(**tokens).last_hidden_state
        mask = tokens["attention_mask"].unsqueeze(-1).float()
        vectors = (states * mask).sum(1) / mask.sum(1)
        return {"predictions": torch.nn.functional.normalize(vectors).tolist()}

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", access_log=False)


class Running:
    """A server on one processor."""

    def __init__(self, name, command, port=None):
        self.name = name
        self.lines = []
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        self.process = subprocess.Popen(
            ["taskset", "-c", "0", *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        self.port = port
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        begun = time.monotonic()
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() - begun > 300:
                raise SystemExit(f"{name} did not start:\n" + "".join(self.lines[-20:]))
            time.sleep(0.2)
        self.start = time.monotonic() - begun

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line)
            found = re.search(r"listening on http://[^:/]+:(\d+)", line)
            if found:
                self.port = int(found.group(1))

    def answers(self):
        try:
            return self.port is not None and self.ask(self.connection(), ["w1"]) is not None
        except OSError:
            return False

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(self, connection, texts):
        connection.request("POST", f"/v1/models/{NAME}:predict", json.dumps({"instances": texts}), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        body = reply.read()
        return json.loads(body)["predictions"] if reply.status == 200 else None

    def load(self, texts, seconds):
        """Texts per second over all connections."""
        counts = [0] * CONNECTIONS
        end = time.monotonic() + seconds
        body = json.dumps({"instances": texts})

        def work(i):
            connection = self.connection()
            while time.monotonic() < end:
                connection.request("POST", f"/v1/models/{NAME}:predict", body, {"Content-Type": "application/json"})
                reply = connection.getresponse()
                reply.read()
                if reply.status != 200:
                    raise SystemExit(f"{self.name}: HTTP {reply.status}")
                counts[i] += len(texts)

        begun = time.monotonic()
        threads = [threading.Thread(target=work, args=(i,)) for i in range(CONNECTIONS)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        return sum(counts) / (time.monotonic() - begun)

    def memory(self):
        """Resident megabytes."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) // 1024

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


def texts(count, tokens):
    return [" ".join(f"w{37 * (i * tokens + j) % 20000}" for j in range(tokens - 2)) for i in range(count)]


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b)) / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def other(folder):
    if importlib.util.find_spec("huggingfaceserver"):
        return Running(
            "KServe's Hugging Face server",
            [sys.executable, "-m", "huggingfaceserver", f"--model_dir={folder}", f"--model_name={NAME}", "--http_port=18080",
             "--task=text_embedding", "--backend=huggingface", "--dtype=float32", "--disable_log_requests"],
            18080)
    return Running("FastAPI and transformers", [sys.executable, __file__, "--folder", folder, "--serve", "18080"], 18080)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=pathlib.Path, default=HERE / "target" / "encoder")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--program", default=str(HERE.parents[1] / "nereid"))
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        return transformers_server(given.folder, given.serve)
    if not (given.folder / "model.safetensors").is_file():
        raise SystemExit(f"{given.folder} has no model; make_encoder.py makes it")
    servers = [
        Running("Nereid", [given.program, "serve", f"--model_dir={given.folder}", f"--model_name={NAME}", "--http_port=0",
                           "--model_format=huggingface"]),
        other(given.folder)]
    os.sched_setaffinity(0, set(range(1, os.cpu_count())) or {0})
    try:
        own, their = (server.ask(server.connection(), texts(3, 16)) for server in servers)
        worst = min(cosine(a, b) for a, b in zip(own, their))
        if worst < 0.9999:
            raise SystemExit(f"the vectors differ: cosine {worst}")
        print(f"the vectors are the same: cosine at least {worst:.6f}")
        print(f"| texts per second | {servers[0].name} | {servers[1].name} | ratio | bar |\n|---|---|---|---|---|")
        for count, tokens in ((1, 16), (1, 128), (8, 16), (8, 128)):
            sent = texts(count, tokens)
            rates = [[], []]
            for round in range(-1, given.rounds):
                for rate, server in zip(rates, servers):
                    measured = server.load(sent, given.seconds if round >= 0 else min(3, given.seconds))
                    if round >= 0:
                        rate.append(measured)
            ratio = statistics.median(a / b for a, b in zip(*rates))
            spread = [f"{min(r):.0f}/{statistics.median(r):.0f}/{max(r):.0f}" for r in rates]
            print(f"| {count} x {tokens} tokens | {spread[0]} | {spread[1]} | {ratio:.2f} | {'PASS' if ratio >= BAR else 'MISS'} |", flush=True)
        for what, of in (("start, s", lambda s: f"{s.start:.1f}"), ("resident, MB", lambda s: s.memory())):
            print(f"| {what} | {of(servers[0])} | {of(servers[1])} | | |")
    finally:
        for server in servers:
            server.stop()


if __name__ == "__main__":
    main()
