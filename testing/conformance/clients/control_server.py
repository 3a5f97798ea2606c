# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""A server with its control plane, a Kubernetes-style client of its API, and an HTTP server that services call."""
import http.client
import json
import pathlib
import re
import sys
import threading
import time
import urllib.parse
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import yaml

import server
from server import Server

CONTROL = pathlib.Path(__file__).resolve().parent / "control"
PLURALS = {
    "InferenceService": "inferenceservices",
    "ServingRuntime": "servingruntimes",
    "ClusterServingRuntime": "clusterservingruntimes",
    "InferenceGraph": "inferencegraphs",
    "ConfigMap": "configmaps",
    "ServiceAccount": "serviceaccounts",
    "Secret": "secrets",
}


def until(condition, what, timeout=60):
    """As in the other suites, with a longer timeout: most tests wait for child processes to start."""
    return server.until(condition, what, timeout)


class Refused(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status}: {body.get('message', body)}")
        self.status = status
        self.message = body.get("message", "")


class ControlApi:
    """
    What services and graphs are applied to, and answer by: the control plane of one machine or a cluster. `values` fill in
    what the files of `control/` leave open: ${models}, ${python} and so on. `base` is host:port of the services' requests.
    """

    cluster = False

    def text(self, file, **values):
        text = (CONTROL / file).read_text() if file.endswith(".yaml") else file
        for key, value in {**self.values, **values}.items():
            text = text.replace("${" + key + "}", str(value))
        return text

    def connection(self, timeout):
        """A connection to the API of the resources."""
        raise NotImplementedError

    def api(self, method, path, body=None, kind="application/json", timeout=30):
        connection = self.connection(timeout)
        try:
            connection.request(method, path, body, {"Content-Type": kind, "Accept": "application/json"})
            reply = connection.getresponse()
            answer = json.loads(reply.read() or b"{}")
        finally:
            connection.close()
        if reply.status >= 300:
            raise Refused(reply.status, answer)
        return answer

    @staticmethod
    def path(kind, name, namespace="demo", version=None):
        version = version or ("serving.kserve.io/v1beta1" if kind == "InferenceService" else "serving.kserve.io/v1alpha1")
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        return f"{root}/namespaces/{namespace}/{PLURALS[kind]}/{name}"

    def apply(self, file, **values):
        """Applies every document; returns the last response."""
        answer = None
        for document in yaml.safe_load_all(self.text(file, **values)):
            meta = document["metadata"]
            where = self.path(document["kind"], meta["name"], meta.get("namespace", "demo"), document["apiVersion"])
            answer = self.api(
                "PATCH", where + "?fieldManager=tests&force=true", json.dumps(document), "application/apply-patch+yaml")
        return answer

    def get(self, name, namespace="demo", kind="InferenceService"):
        return self.api("GET", self.path(kind, name, namespace))

    def delete(self, name, namespace="demo", kind="InferenceService"):
        return self.api("DELETE", self.path(kind, name, namespace))

    def gone(self, name, namespace="demo", kind="InferenceService", timeout=60):
        def missing():
            try:
                self.get(name, namespace, kind)
                return False
            except Refused as e:
                return e.status == 404

        until(missing, f"{name} is gone", timeout)

    def condition(self, name, kind="Ready", namespace="demo", of="InferenceService"):
        status = self.get(name, namespace, of).get("status", {})
        return next((c for c in status.get("conditions", []) if c["type"] == kind), {"status": "Unknown"})

    def steady(self, name, namespace="demo", of="InferenceService", timeout=120):
        """Waits until the last applied generation is ready; returns the resource."""
        def look():
            found = self.get(name, namespace, of)
            status = found.get("status", {})
            conditions = {c["type"]: c["status"] for c in status.get("conditions", [])}
            current = status.get("observedGeneration") == found["metadata"]["generation"]
            return found if current and conditions.get("Ready") == "True" else None

        try:
            return until(look, f"{name} is ready", timeout)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{json.dumps(self.get(name, namespace, of).get('status'), indent=1)}") from None

    def call(self, name, path, body=None, namespace="demo", headers=None, by="host", **more):
        """Calls a service by its host, or by its path; returns (status, headers, parsed JSON body)."""
        if by == "host":
            headers = {"Host": f"{name}-{namespace}.example.com", **(headers or {})}
        else:
            path = f"/serving/{namespace}/{name}{path}"
        method = "GET" if body is None else "POST"
        body = json.dumps(body) if isinstance(body, (dict, list)) else body
        if method == "POST":
            headers = {"Content-Type": "application/json", **(headers or {})}
        status, got, answer = self.ask(method, path, body, headers, **more)
        try:
            return status, got, json.loads(answer)
        except ValueError:
            return status, got, answer

    def predict(self, name, rows, **more):
        status, _, answer = self.call(name, f"/v1/models/{name}:predict", {"instances": rows}, **more)
        assert status == 200, (status, answer)
        return answer["predictions"]


class ControlServer(ControlApi, Server):
    """A server with its control plane. Without a directory everything is where the server puts it by itself."""

    def __init__(self, directory, *arguments, values=None, **more):
        self.values = {"python": sys.executable, "control": str(CONTROL), **(values or {})}
        if directory is not None:
            directory = pathlib.Path(directory)
            arguments = ["--control-directory", directory / "control", "--model-cache", directory / "cache", *arguments]
        Server.__init__(self, "--control", "--control-port", "0", *arguments, **more)
        line = until(lambda: next((x for x in self.lines if "control API on" in x), None), "the control API listens")
        self.control_url = re.search(r"control API on (http://[^;\s]+)", line).group(1)

    def connection(self, timeout):
        address = urllib.parse.urlsplit(self.control_url)
        return http.client.HTTPConnection(address.hostname, address.port, timeout=timeout)


class Web:
    """Serves the files of a directory and records POST requests; can be set to fail and to require headers."""

    def __init__(self, folder, address="127.0.0.1"):
        web = self
        self.folder = folder
        self.taken = []
        self.failing = 0
        self.status = 200
        self.wanted = {}
        self.asked = []
        self.headers = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def reply(self, status, body, kind, tag=None):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                if tag:
                    self.send_header("ETag", tag)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def do_GET(self):
                web.asked.append(f"{self.command} {self.path}")
                web.headers.append({k.lower(): v for k, v in self.headers.items()})
                if web.failing > 0:
                    web.failing -= 1
                    return self.reply(503, b"not now", "text/plain")
                if web.wanted and any(self.headers.get(k) != v for k, v in web.wanted.items()):
                    return self.reply(401, b"who is there?", "text/plain")
                file = web.folder / self.path.partition("?")[0].lstrip("/")
                if not file.is_file():
                    return self.reply(404, b"nothing here", "text/plain")
                body = file.read_bytes()
                tag = f'"{zlib.crc32(body):x}"'
                if self.headers.get("If-None-Match") == tag:
                    return self.reply(304, b"", "application/gzip", tag)
                return self.reply(200, body, "application/gzip", tag)

            do_HEAD = do_GET

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                web.taken.append((time.monotonic(), {k.lower(): v for k, v in self.headers.items()}, body))
                return self.reply(web.status, b'{"message":"SUCCESS"}', "application/json")

        self.server = ThreadingHTTPServer((address, 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://{address}:{self.server.server_port}"

    def close(self):
        self.server.shutdown()
