#!/usr/bin/env python3
# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""What `nereid tune` finds on real models, and the numbers of the simulated ones.

    testing/bench/tune.py compare [MODEL...]   the search beside the whole grid of the same values, about ten minutes a model
    testing/bench/tune.py fit [MODEL...]       run times by rows and threads, and the constants of SimulatedModel fitted to them

The models are those of examples/models, in process, on an otherwise idle machine. It needs a built distribution (./mvnw -Pquick package).
"""

import glob
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODELS = {
    # the latency limit, and what a request needs beyond the model's metadata
    "minilm": ("p99=60ms", ["--data", "zero", "--shape", "input_ids:64", "--shape", "attention_mask:64", "--shape", "token_type_ids:64"]),
    "ocr_rec": ("p99=100ms", ["--shape", "x:3,48,160"]),
    "iris": ("p99=1ms", []),
    "simple": ("p99=1ms", []),
}
# A grid small enough to be measured whole: 2 * 2 * 3 * 2 configurations, beside the values that the model has.
SPACE = [
    "--batch-sizes=1,8", "--delays=0,1000", "--instances=1,2,4", "--threads=1,2", "--max-concurrency=32", "--measurement-interval=500ms",
    "--warmup=100ms",
]


def nereid():
    found = glob.glob(os.path.join(ROOT, "apps/nereid/target/dist/nereid-*/bin/nereid"))
    if not found:
        sys.exit("tune.py: there is no distribution (run: ./mvnw -Pquick -DskipTests package)")
    return found[0]


def run(*arguments):
    done = subprocess.run([nereid(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 3):
        sys.exit(f"tune.py: nereid {' '.join(arguments)}: {done.stderr}")
    return json.loads(done.stdout)


def copy(model, folder, edit=lambda text: text):
    place = os.path.join(folder, model)
    shutil.copytree(os.path.join(ROOT, "examples/models", model), place)
    config = os.path.join(place, "config.pbtxt")
    if os.path.exists(config):
        text = open(config, encoding="utf-8").read()
    else:
        text = ""
    text = edit(text)
    if text:
        with open(config, "w", encoding="utf-8") as file:
            file.write(text)
    return folder


def tune(model, search):
    limit, more = MODELS[model]
    with tempfile.TemporaryDirectory() as folder:
        return run(
            "tune", model, "--protocol=in-process", "--model-repository", copy(model, folder), f"--slo={limit}", *SPACE, *more,
            "--budget=1h", "--dry-run", f"--search={search}", "--output=json")


def compare(models):
    print(f"{'model':10} {'limit':10} {'search: rate/s':>15} {'grid: rate/s':>13} {'ratio':>6} {'measurements':>20}  found")
    for model in models:
        quick = tune(model, "quick")
        grid = tune(model, "grid")
        rates = [each["after"]["rate_requests_per_second"] for each in (quick, grid)]
        found = quick["after"]
        print(
            f"{model:10} {MODELS[model][0]:10} {rates[0]:15.1f} {rates[1]:13.1f} {rates[0] / rates[1]:6.2f}"
            f" {quick['measurements']:6} of {grid['measurements']:4} ({quick['measurements'] / grid['measurements']:.0%})"
            f"  batch {found['batch_size']}, delay {found['max_queue_delay_microseconds']} us,"
            f" {found['instances']} x {found['threads']} threads", flush=True)


def times(model, threads, rows):
    def edit(text):
        text = re.sub(r"max_batch_size: *\d+", "max_batch_size: 64", text)
        return text + (f'parameters {{ key: "intra_op_thread_count" value {{ string_value: "{threads}" }} }}\n' if threads > 1 else "")

    with tempfile.TemporaryDirectory() as folder:
        load = run(
            "perf", model, "--protocol=in-process", "--model-repository", copy(model, folder, edit), f"--batch-size={rows}",
            "--duration=2s", "--output=json", *MODELS[model][1])["loads"][0]
    return load["latency_p50_ms"] * 1000, load["latency_p95_ms"] * 1000


def fit(models):
    for model in models:
        sizes = (1, 2, 4, 8, 16)
        one = [times(model, 1, rows) for rows in sizes]
        two = [times(model, 2, rows) for rows in sizes]
        # Least squares of time = fixed + rows * row, weighted by 1 / time, so that small batches count as much.
        weights = [1 / time[0] ** 2 for time in one]
        total = sum(weights)
        mean_x = sum(w * x for w, x in zip(weights, sizes)) / total
        mean_y = sum(w * y[0] for w, y in zip(weights, one)) / total
        row = sum(w * (x - mean_x) * (y[0] - mean_y) for w, x, y in zip(weights, sizes, one)) / sum(
            w * (x - mean_x) ** 2 for w, x in zip(weights, sizes))
        fixed = max(0.0, mean_y - row * mean_x)
        # Amdahl's law with two threads: shortened = serial + (1 - serial) / 2.
        serial = sum(min(1.0, max(0.0, 2 * b[0] / a[0] - 1)) for a, b in zip(one, two)) / len(sizes)
        scatter = sum(math.log(time[1] / time[0]) / 1.645 for time in one) / len(sizes)
        print(f"{model}: fixed {fixed:.1f} us, row {row:.1f} us, serial {serial:.2f}, scatter {scatter:.3f}"
              f"   (1 thread: {[round(t[0], 1) for t in one]}, 2 threads: {[round(t[0], 1) for t in two]})", flush=True)


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in ("compare", "fit"):
        sys.exit(__doc__)
    models = sys.argv[2:] or list(MODELS)
    for model in models:
        if model not in MODELS:
            sys.exit(f"tune.py: unknown model '{model}' (expected: {', '.join(MODELS)})")
    (compare if sys.argv[1] == "compare" else fit)(models)


if __name__ == "__main__":
    main()
