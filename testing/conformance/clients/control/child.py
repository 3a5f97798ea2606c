# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""A custom container's program: a predictor, a transformer, or a step of a graph, with KServe's arguments."""
import argparse
import http.client
import json
import os
import re
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# In a pod the program is called from other machines.
ADDRESS = "0.0.0.0" if "KUBERNETES_SERVICE_HOST" in os.environ else "127.0.0.1"
parser = argparse.ArgumentParser()
parser.add_argument("--role", default="predictor")
parser.add_argument("--http_port", type=int, default=int(os.environ.get("PORT", "8080")))
parser.add_argument("--model_name", default=os.environ.get("INFERENCE_SERVICE_NAME", "model"))
parser.add_argument("--predictor_host")
parser.add_argument("--predictor_protocol", default="v1")
parser.add_argument("--factor", type=float, default=1.0)
parser.add_argument("--status", type=int, default=200)
parser.add_argument("--answer")
parser.add_argument("--delay", type=float, default=0.0)
parser.add_argument("--switch", help="a folder: while it has a file 'unready' or 'dead', that probe fails")
options, _ = parser.parse_known_args()
print("listening on", options.http_port, flush=True)
asked = []


def ask(path, body, headers):
    host, _, port = options.predictor_host.partition(":")
    connection = http.client.HTTPConnection(host, int(port or 80), timeout=30)
    kept = {k: v for k, v in headers.items() if k.lower() in ("x-request-id", "traceparent", "authorization")}
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json", **kept})
    reply = connection.getresponse()
    return reply.status, reply.read()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Process", str(os.getpid()))
        self.send_header("X-Echo", self.headers.get("X-Echo", "nothing"))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/asked":
            return self.reply(200, asked)
        if self.path in ("/ready", "/live") and options.switch:
            fails = os.path.exists(os.path.join(options.switch, {"/ready": "unready", "/live": "dead"}[self.path]))
            open(os.path.join(options.switch, "failed" if fails else "passed"), "w").close()
            return self.reply(503 if fails else 200, {"fails": fails})
        if self.path.startswith("/variables/"):
            return self.reply(200, {"value": os.environ.get(self.path[len("/variables/"):])})
        if re.fullmatch(r"/v[12]/models/[^/]+(/ready)?", self.path):
            return self.reply(200, {"name": options.model_name, "ready": True})
        return self.reply(200, {"status": "alive"})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))) or b"{}")
        asked.append({k.lower(): v for k, v in self.headers.items()})
        time.sleep(options.delay)
        if options.answer is not None:
            return self.reply(options.status, options.answer.encode())
        if options.role == "explainer":
            status, answer = ask(f"/v1/models/{options.model_name}:predict", body, self.headers)
            return self.reply(status, {"explanations": json.loads(answer)["predictions"]} if status == 200 else answer)
        if options.role == "transformer":
            return self.transform(body)
        if options.status != 200:
            return self.reply(options.status, {"error": "as asked"})
        if "inputs" in body:
            rows = body["inputs"][0]
            width = rows["shape"][-1]
            sums = [options.factor * sum(rows["data"][i : i + width]) for i in range(0, len(rows["data"]), width)]
            output = {"name": "output-0", "shape": [len(sums)], "datatype": "FP64", "data": sums}
            return self.reply(200, {"model_name": options.model_name, "id": body.get("id", ""), "outputs": [output]})
        return self.reply(200, {"predictions": [options.factor * sum(row) for row in body["instances"]]})

    def transform(self, body):
        scaled = [[options.factor * x for x in row] for row in body["instances"]]
        if options.predictor_protocol == "v1":
            status, answer = ask(f"/v1/models/{options.model_name}:predict", {"instances": scaled}, self.headers)
            return self.reply(status, answer)
        flat = [x for row in scaled for x in row]
        tensor = {"name": "input", "shape": [len(scaled), len(scaled[0])], "datatype": "FP32", "data": flat}
        status, answer = ask(f"/v2/models/{options.model_name}/infer", {"inputs": [tensor]}, self.headers)
        if status != 200:
            return self.reply(status, answer)
        outputs = {o["name"]: o["data"] for o in json.loads(answer)["outputs"]}
        return self.reply(200, {"predictions": outputs})


ThreadingHTTPServer.daemon_threads = True
ThreadingHTTPServer((ADDRESS, options.http_port), Handler).serve_forever()
