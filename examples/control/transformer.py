"""A transformer with KServe's arguments and only the standard library: numbers as text in, flower names out."""

import argparse
import json
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NAMES = ["setosa", "versicolor", "virginica"]

options = argparse.ArgumentParser()
options.add_argument("--model_name")
options.add_argument("--predictor_host")
options.add_argument("--http_port", type=int)
options, _ = options.parse_known_args()


class Transformer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer({"name": options.model_name, "ready": True})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        rows = [[float(number) for number in text.split()] for text in body["instances"]]
        request = urllib.request.Request(
            f"http://{options.predictor_host}/v1/models/{options.model_name}:predict",
            json.dumps({"instances": rows}).encode(),
        )
        with urllib.request.urlopen(request) as response:
            predictions = json.load(response)["predictions"]
        print(f"answered {len(rows)}", flush=True)
        self.answer({"predictions": [NAMES[one["label"][0]] for one in predictions]})

    def log_message(self, *_):
        pass  # a line for every readiness probe would flood the log

    def answer(self, tree):
        body = json.dumps(tree).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


print(f"transformer of {options.model_name} on port {options.http_port}, predictor at {options.predictor_host}")
ThreadingHTTPServer(("127.0.0.1", options.http_port), Transformer).serve_forever()
