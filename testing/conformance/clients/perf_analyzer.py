# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs perf_analyzer against the server over both protocols; it fails when any request does."""
import pathlib
import subprocess
import sys
import tempfile

import models
from server import Server

with tempfile.TemporaryDirectory() as folder:
    server = Server(models.build(pathlib.Path(folder)))
    try:
        for protocol in ("http", "grpc"):
            for model in ("simple", "identity_fp32"):
                command = ["perf_analyzer", "-m", model, "-u", server.base, "-i", protocol, "-b", "1"]
                command += ["--concurrency-range", "4", "--measurement-interval", "2000", "--max-trials", "3"]
                command += ["--stability-percentage", "999", "--shape", "INPUT0:16"] if model != "simple" else ["--stability-percentage", "999"]
                if subprocess.run(command, timeout=120).returncode != 0:
                    sys.exit(f"perf_analyzer failed: {' '.join(command)}")
    finally:
        server.stop()
