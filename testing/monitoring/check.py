#!/usr/bin/env python3
# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
Evaluates what deploy/monitoring has over metrics that a real Prometheus records from a run:

    python3 testing/monitoring/check.py DISTRIBUTION

A server with a control plane gets requests, good ones and bad ones, at models and at a service, and an operator carries out services in
a cluster; every query of every panel must give at least one series, and none may fail. The rules and their tests are checked by promtool.
Queries about the operator are skipped where the cluster's control plane is not built. Ends with 77 when Prometheus is not installed.
"""

import json
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import operator_metrics

ROOT = pathlib.Path(__file__).resolve().parents[2]
MONITORING = ROOT / "deploy/monitoring"
SECONDS = 24
problems = []


def check(holds, what):
    print(("ok      " if holds else "FAILED  ") + what, flush=True)
    if not holds:
        problems.append(what)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def call(url, body=None, headers=None):
    """The status and the text of the answer; 0 without one."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json", **(headers or {})})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode(errors="replace")
    except OSError as e:
        return 0, str(e)


def until(what, condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"not within {seconds} s: {what}")
        time.sleep(0.1)


class Load:
    """Requests from several threads until the end of the block."""

    def __init__(self, *requests, threads=4):
        self.requests = requests
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(threads)]

    def run(self, number):
        while not self.over.is_set():
            for request in self.requests:
                call(*request)
            time.sleep(0.005 * (number + 1))

    def __enter__(self):
        for thread in self.threads:
            thread.start()

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()


def queries():
    """Each query of each panel: the dashboard, the panel and the query, with the values of its variables."""
    for path in sorted((MONITORING / "dashboards").glob("*.json")):
        board = json.loads(path.read_text(encoding="utf-8"))
        for panel in board["panels"]:
            for target in panel.get("targets", []):
                query = target["expr"].replace("$__rate_interval", "10s").replace('model="$model"', 'model="simple"')
                yield path.stem, panel["title"], re.sub(r"\$(job|instance|model)", ".*", query)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    missing = [tool for tool in ("prometheus", "promtool") if shutil.which(tool) is None]
    if missing:
        print(f"SKIPPED {', '.join(missing)} not on the PATH (Debian's package prometheus)")
        sys.exit(77)
    written = subprocess.run([sys.executable, MONITORING / "dashboards.py", "--check"], check=False)
    check(written.returncode == 0, "the dashboards are what dashboards.py writes")
    for command in ("check rules alerts.yaml", "test rules alerts_test.yaml", "check config --syntax-only prometheus.yaml"):
        done = subprocess.run(
            ["promtool", *command.split()], cwd=MONITORING, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        check(done.returncode == 0, f"promtool {command}{'' if done.returncode == 0 else ': ' + done.stdout}")
    alerts = set(re.findall(r"^ *- alert: (\w+)$", (MONITORING / "alerts.yaml").read_text(encoding="utf-8"), re.M))
    production = (ROOT / "docs/PRODUCTION.md").read_text(encoding="utf-8")
    absent = sorted(alert for alert in alerts if f"\n#### {alert}\n" not in production)
    check(not absent, f"docs/PRODUCTION.md has an entry for each of the {len(alerts)} alerts {absent or ''}")

    home = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="nereid-monitoring-") as work:
        run(home, pathlib.Path(work))
    if problems:
        sys.exit(f"{len(problems)} of the checks failed")


def run(home, work):
    why = operator_metrics.missing()
    if why is None:
        operator = operator_metrics.Operator(home, work, free_port())
        with operator:
            until("the operator leads", lambda: "nereid_operator_leader 1" in call(f"http://127.0.0.1:{operator.port}/metrics")[1])
            run_server(home, work, operator)
    else:
        run_server(home, work, None)
        print(f"SKIPPED queries about the operator: {why}")


def run_server(home, work, operator):
    port, control, prometheus = free_port(), free_port(), free_port()
    started = []
    with open(work / "server.log", "wb") as log, open(work / "prometheus.log", "wb") as other:
        try:
            command = [home / "bin/nereid", "serve", ROOT / "examples/models", "--port", str(port), "--model-memory", "2GB"]
            command += ["--control", "--control-port", str(control), "--control-directory", work / "control", "--model-cache", work / "cache"]
            started.append(subprocess.Popen(command, stdout=log, stderr=log))
            base = f"http://127.0.0.1:{port}"
            until("the server is ready", lambda: call(base + "/v2/models/simple/ready")[0] == 200)
            record(work, [port] if operator is None else [port, operator.port], prometheus, started, other)
            drive(home, work, base, control, operator)
            time.sleep(3)
            evaluate(f"http://127.0.0.1:{prometheus}", operator is not None)
        except SystemExit:
            print((work / "server.log").read_text(errors="replace")[-3000:])
            if operator is not None:
                print(operator.log.read_text(errors="replace")[-3000:])
            raise
        finally:
            for process in reversed(started):
                process.send_signal(signal.SIGTERM)
            for process in started:
                process.wait(timeout=60)


def record(work, ports, prometheus, started, log):
    """Starts Prometheus with the rules and the configuration of deploy/monitoring, but every second and of the server and the operator of this run."""
    config = (MONITORING / "prometheus.yaml").read_text(encoding="utf-8")
    config = re.sub(r"(scrape|evaluation)_interval: \w+", r"\1_interval: 1s", config)
    config = re.sub(r"targets: \[[^]]*\]", "targets: " + json.dumps([f"127.0.0.1:{port}" for port in ports]), config)
    (work / "prometheus.yaml").write_text(config, encoding="utf-8")
    shutil.copy(MONITORING / "alerts.yaml", work)
    command = ["prometheus", f"--config.file={work}/prometheus.yaml", f"--storage.tsdb.path={work}/data"]
    started.append(subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{prometheus}"], stdout=log, stderr=log))
    until("Prometheus is ready", lambda: call(f"http://127.0.0.1:{prometheus}/-/ready")[0] == 200)


def drive(home, work, base, control, operator):
    """Requests to models of the repository and to a service, good ones and bad ones."""
    inputs = [{"name": f"INPUT{i}", "shape": [1, 16], "datatype": "INT32", "data": list(range(16))} for i in (0, 1)]
    simple = (base + "/v2/models/simple/infer", {"inputs": inputs})
    wrong = (base + "/v2/models/simple/infer", {"inputs": inputs[:1]})
    iris = (base + "/v1/models/iris:predict", {"instances": [[5.1, 3.5, 1.4, 0.2]]})
    host = {"Host": "flowers-default.example.com"}
    service = (base + "/v1/models/flowers:predict", {"instances": [[5.1, 3.5, 1.4, 0.2]]}, host)
    resource = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "flowers", "namespace": "default"},
        "spec": {"predictor": {"minReplicas": 1, "model": {"modelFormat": {"name": "onnx"}, "storageUri": f"file://{ROOT}/examples/models/iris/1"}}},
    }
    (work / "service.json").write_text(json.dumps(resource), encoding="utf-8")
    command = [home / "bin/nereid", "apply", "-f", work / "service.json", "--server", f"http://127.0.0.1:{control}"]
    applied = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    check(applied.returncode == 0, f"a service is applied: {applied.stdout.strip()}")
    until("the service answers", lambda: call(*service)[0] == 200)
    end = time.monotonic() + SECONDS
    with Load(simple, wrong, iris, service):
        number = 0
        while time.monotonic() < end:
            if operator is not None:
                operator.change(number)
            number += 1
            time.sleep(2)


def evaluate(prometheus, with_operator):
    about_operator = counted = 0
    for board, panel, query in queries():
        if "nereid_operator_" in query:
            if not with_operator:
                continue
            about_operator += 1
        counted += 1
        _, text = call(prometheus + "/api/v1/query?" + urllib.parse.urlencode({"query": query}))
        result = json.loads(text)
        if result["status"] != "success" or not result["data"]["result"]:
            check(False, f"{board}, panel '{panel}': {result.get('error', 'empty')}: {query}")
    check(counted > 40, f"{counted} queries of panels were evaluated")
    if with_operator:
        check(about_operator >= 4, f"{about_operator} of them are about the operator")
    rules = [rule for group in json.loads(call(prometheus + "/api/v1/rules")[1])["data"]["groups"] for rule in group["rules"]]
    unhealthy = [rule["name"] for rule in rules if rule["health"] != "ok"]
    check(len(rules) >= 10 and not unhealthy, f"{len(rules)} rules are evaluated without an error {unhealthy or ''}")


if __name__ == "__main__":
    main()
