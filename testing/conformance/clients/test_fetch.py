# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""`nereid fetch` as a process, given what KServe gives to the storage initializer of a pod."""
import io
import os
import re
import signal
import subprocess
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from s3_server import S3
from server import program, until

PART = 8 << 20


@pytest.fixture
def s3(tmp_path):
    root = tmp_path / "store"
    (root / "zoo/iris/sub").mkdir(parents=True)
    (root / "zoo/iris/model.joblib").write_bytes(b"weights")
    (root / "zoo/iris/sub/notes.txt").write_bytes(b"notes")
    (root / "zoo/iris-2").mkdir()
    (root / "zoo/iris-2/other.joblib").write_bytes(b"other")
    store = S3(root, "reader", "open sesame")
    yield store
    store.close()


class Web:
    """Files with ranges. `wanted` headers must be sent; the parts from `stalled` on wait until `go` is set."""

    def __init__(self):
        web = self
        self.files = {}
        self.wanted = {}
        self.stalled = None
        self.go = threading.Event()
        self.ranges = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                body = web.files.get(self.path)
                status = 404 if body is None else 200
                if any(self.headers.get(k) != v for k, v in web.wanted.items()):
                    status = 401
                start, end = 0, len(body or b"")
                asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
                if status == 200 and asked:
                    status, start, end = 206, int(asked.group(1)), int(asked.group(2)) + 1
                    web.ranges.append(start)
                    if web.stalled is not None and start >= web.stalled:
                        web.go.wait(60)
                part = body[start:end] if status < 300 else b""
                self.send_response(status)
                self.send_header("Content-Length", str(len(part)))
                self.send_header("Content-Type", "application/octet-stream")
                self.send_header("Accept-Ranges", "bytes")
                self.send_header("ETag", '"v1"')
                if status == 206:
                    self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(body)}")
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(part)

            do_HEAD = do_GET

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.url = f"http://{self.host}"

    def close(self):
        self.go.set()
        self.server.shutdown()


@pytest.fixture
def web():
    site = Web()
    yield site
    site.close()


def fetch(*arguments, **environment):
    variables = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    variables.update(environment)
    return subprocess.run(
        [program(), "fetch", *map(str, arguments)], env=variables, capture_output=True, text=True, timeout=120)


def secret(s3, key="open sesame"):
    """The variables that KServe makes from a Secret with S3 keys and its annotations."""
    return {
        "AWS_ACCESS_KEY_ID": "reader", "AWS_SECRET_ACCESS_KEY": key, "S3_USE_HTTPS": "0", "S3_ENDPOINT": s3.address,
        "AWS_ENDPOINT_URL": f"http://{s3.address}", "S3_VERIFY_SSL": "0", "awsAnonymousCredential": "false",
        "AWS_DEFAULT_REGION": "us-east-2", "HF_HUB_ENABLE_HF_TRANSFER": "1"}


def test_a_bucket_with_the_secret_of_a_service_account(s3, tmp_path):
    target = tmp_path / "models"
    done = fetch("s3://zoo/iris", target, **secret(s3))
    assert done.returncode == 0, done.stderr
    assert (target / "model.joblib").read_bytes() == b"weights" and (target / "sub/notes.txt").read_bytes() == b"notes"
    assert sorted(f.name for f in target.iterdir()) == [".nereid-fetch", "model.joblib", "sub"]
    before = len(s3.asked)
    done = fetch("s3://zoo/iris", target, **secret(s3))
    assert done.returncode == 0 and "already: 2 files" in done.stdout, done.stdout + done.stderr
    assert all("list-type" in asked for asked in s3.asked[before:])


def test_a_failure_is_the_last_thing_said_and_in_the_termination_log(s3, tmp_path):
    log = tmp_path / "termination-log"
    done = fetch("--termination-log", log, "s3://zoo/iris", tmp_path / "models", **secret(s3, "open barley"))
    assert done.returncode == 1
    assert done.stderr.startswith("nereid: s3://zoo/iris: the store answered 403"), done.stderr
    assert len(done.stderr.splitlines()) <= 2 and "barley" not in done.stdout + done.stderr
    assert log.read_text().startswith("s3://zoo/iris: the store answered 403")
    assert fetch("s3://zoo/iris").returncode == 2


def test_headers_for_a_host_reach_the_program_through_its_launcher(web, tmp_path):
    web.wanted = {"X-Token": "open sesame"}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo("iris/model.bin")
        entry.size = 7
        archive.addfile(entry, io.BytesIO(b"weights"))
    web.files["/iris.tar.gz"] = packed.getvalue()
    done = fetch(f"{web.url}/iris.tar.gz", tmp_path / "models", **{"127.0.0.1-headers": '{"X-Token":\n "open sesame"}'})
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "models/iris/model.bin").read_bytes() == b"weights"


def test_sigterm_leaves_parts_that_the_next_start_goes_on_with(web, tmp_path):
    web.files["/big.bin"] = os.urandom(4 * PART)
    web.stalled = 2 * PART
    target = tmp_path / "models"
    log = tmp_path / "termination-log"
    command = [program(), "fetch", "--termination-log", str(log), f"{web.url}/big.bin", str(target)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def parts():
        return sum(text.read_text().count(" .\n") for text in target.glob(".nereid-fetch.partial/*/journal"))

    until(lambda: parts() == 2, "two parts are complete")
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143 and "the fetch was interrupted" in err, err
    assert "the fetch was interrupted" in log.read_text()
    assert not (target / "big.bin").exists()
    web.stalled = None
    web.go.set()
    web.ranges.clear()
    done = fetch(f"{web.url}/big.bin", target)
    assert done.returncode == 0, done.stderr
    assert sorted(web.ranges) == [2 * PART, 3 * PART]
    assert (target / "big.bin").read_bytes() == web.files["/big.bin"]
    assert not (target / ".nereid-fetch.partial").exists()


def test_in_a_pod_nothing_of_the_pod_itself_is_reached(web, tmp_path):
    web.files["/m.bin"] = b"x"
    done = fetch(f"{web.url}/m.bin", tmp_path / "a", KUBERNETES_SERVICE_HOST="10.96.0.1")
    assert done.returncode == 1 and "that of this machine" in done.stderr and not web.ranges
    done = fetch(f"{web.url}/m.bin", tmp_path / "a", KUBERNETES_SERVICE_HOST="10.96.0.1",
                 NEREID_STORAGE_ALLOW=f"{web.url}/")
    assert done.returncode == 0, done.stderr
