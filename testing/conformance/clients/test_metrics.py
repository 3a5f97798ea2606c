# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The pages of metrics, read by Prometheus' promtool and by the OpenMetrics parser of its Python client."""
import json
import math
import re
import shutil
import subprocess

import pytest

pytest.importorskip("yaml")
openmetrics = pytest.importorskip("prometheus_client.openmetrics.parser")

from control_fixtures import IRIS, models, over, web
from control_server import ControlServer
from server import EXAMPLES, ROOT, until

PAGES = ["/metrics", "/monitoring/prometheus/metrics"]
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
TEXT = {"/metrics": "text/plain; version=0.0.4; charset=utf-8", "/monitoring/prometheus/metrics": "text/plain; charset=utf-8"}
# What Prometheus 2.42 sends.
PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PYTHON = ROOT / "backends/python/src/test/resources/models"

PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="NOT TESTED: Prometheus' own reading of the metrics; promtool (package prometheus) is not on the PATH")


def models_config(folder):
    for version in (1, 2):
        target = folder / "listed" / str(version)
        target.mkdir(parents=True)
        shutil.copy(EXAMPLES / "iris/1/model.onnx", target)
    file = folder / "models.config"
    file.write_text(f"""
model_config_list {{
  config {{
    name: "listed"
    base_path: "{folder}/listed"
    model_platform: "onnxruntime"
    model_version_policy {{ specific {{ versions: 1 versions: 2 }} }}
    version_labels {{ key: "stable" value: 1 }}
    weighted_labels {{ key: "canary" value {{ targets {{ version: 2 weight: 1 }} shadows {{ version: 1 }} }} }}
    logging_config {{
      log_collector_config {{ type: "tfrecord" filename_prefix: "{folder}/requests" }}
      sampling_config {{ sampling_rate: 1 }}
    }}
  }}
}}
""")
    return file


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("metrics")


@pytest.fixture(scope="module")
def server(folder, models, web):
    repository = folder / "repository"
    shutil.copytree(EXAMPLES / "simple", repository / "simple")
    shutil.copytree(EXAMPLES / "iris", repository / "cached")
    (repository / "cached/config.pbtxt").write_text(
        'backend: "onnxruntime" max_batch_size: 8 response_cache { enable: true }\n'
        'metric_tags { key: "cost-centre" value: "7 \\"a\\"" }\n')
    shutil.copytree(PYTHON / "counting", repository / "counting")
    monitoring = folder / "monitoring.config"
    monitoring.write_text(f'prometheus_config {{ enable: true path: "{PAGES[1]}" }}')
    server = ControlServer(
        folder, repository, f"--model_config_file={models_config(folder)}", f"--monitoring_config_file={monitoring}",
        "--metrics-config=histogram_latencies=true", "--metrics-config=summary_latencies=true", "--cache-config=local,size=1000000",
        f"--trace-config=triton,file={folder}/trace.json", "--trace-config=rate=1", "--trace-config=level=TIMESTAMPS",
        values={"models": models}, environment={"NEREID_PLUGIN_DIR": str(folder / "plugins")})
    try:
        use(server, web)
    except BaseException:
        server.stop()
        raise
    yield server
    over(server)


def use(server, web):
    """Sends a request or more of every kind that is counted."""
    server.apply("logger.yaml", name="logged", mode="all", sink=web.url, annotation='example.com/more: "no"', more="")
    server.steady("logged")
    iris = {"inputs": [{"name": "X", "shape": [2, 4], "datatype": "FP32", "data": sum(IRIS, [])}]}

    def ask(path, body, status=200, **more):
        found, _, answer = server.ask("POST", path, json.dumps(body), {"Content-Type": "application/json", **more})
        assert found == status, answer

    metadata = json.loads(server.ask("GET", "/v2/models/listed")[2])
    iris["inputs"][0]["name"] = metadata["inputs"][0]["name"]
    for _ in range(4):
        ask("/v2/models/cached/infer", iris)
        ask("/v2/models/listed/versions/canary/infer", iris)
        ask("/v1/models/listed:predict", {"instances": IRIS})
        ask("/v1/models/logged:predict", {"instances": IRIS}, Host="logged-demo.example.com")
    ask("/v2/models/cached/infer", {"inputs": []}, status=400)
    for what in ("count 2.5", "level 8", "time 0.05 5"):
        ask("/v2/models/counting/infer", {"inputs": [{"name": "WHAT", "shape": [1], "datatype": "BYTES", "data": [what]}]})
    until(lambda: server.metric("nereid_payload_events_sent_total") >= 8, "the events are sent")
    until(lambda: server.metric('nereid_label_requests_total{model="listed",label="canary",version="1",shadow="true"}') == 4,
          "the copies are sent")


def page(server, path, accept=None):
    """(content type, text)"""
    status, headers, body = server.ask("GET", path, headers={"Accept": accept} if accept else {})
    assert status == 200
    assert "vary" not in headers, "Prometheus' own servers send none"
    return headers["content-type"], body.decode()


def promtool(*arguments, text=None):
    """(exit code, lines of output)"""
    done = subprocess.run([PROMTOOL, *map(str, arguments)], input=text, capture_output=True, text=True, timeout=60)
    return done.returncode, (done.stdout + done.stderr).splitlines()


@needs_promtool
@pytest.mark.parametrize("path", PAGES)
def test_promtool_has_nothing_to_say_but_about_names(server, path):
    code, lines = promtool("check", "metrics", text=page(server, path)[1])
    # 1 is a page that cannot be parsed, 3 are names and descriptions that are against Prometheus' conventions
    assert code == 3, lines
    own = [line for line in lines if not re.match(r"nv_|:tensorflow:serving:", line)]
    assert sorted(own) == ([] if path != "/metrics" else [
        f'{name} counter metrics should have "_total" suffix'
        for name in ("nereid_batch_cut", "nereid_exchanges", "nereid_exchanges_rejected")])


@needs_promtool
@pytest.mark.parametrize("path", PAGES)
def test_prometheus_reads_openmetrics(server, path, tmp_path):
    """promtool has no check of the format but imports it, with a time for every sample."""
    lines = []
    for line in page(server, path, OPENMETRICS)[1].splitlines():
        sample, exemplar, rest = line.partition(" # {")
        lines.append(line if line.startswith("#") else f"{sample} 1700000000{exemplar}{rest}")
    file = tmp_path / "page"
    file.write_text("\n".join(lines) + "\n")
    code, said = promtool("tsdb", "create-blocks-from", "openmetrics", file, tmp_path / "blocks")
    assert code == 0, said
    file.write_text("\n".join(lines[:-1]) + "\n")
    assert promtool("tsdb", "create-blocks-from", "openmetrics", file, tmp_path / "none")[0] != 0, "a page without # EOF"


def series(names_and_labels):
    """The labels of each sample by its name; bounds and quantiles as numbers, which the formats write differently."""
    found = {}
    for name, labels in names_and_labels:
        labels = {k: float(v) if k in ("le", "quantile") else v for k, v in labels.items()}
        found.setdefault(name, []).append(tuple(sorted(labels.items())))
    return {name: sorted(labels) for name, labels in found.items()}


def lines(text):
    """The samples of the text format. The Python client's own reader appends _total to the names of counters."""
    escapes = {"\\\\": "\\", "\\n": "\n", '\\"': '"'}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, labels = re.fullmatch(r"([\w:]+)(?:\{(.*)\})? \S+", line).groups()
            pairs = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or "")
            yield name, {k: re.sub(r"\\.", lambda e: escapes[e.group()], v) for k, v in pairs}


@pytest.mark.parametrize("path", PAGES)
def test_openmetrics_has_the_names_of_the_text_format(server, path):
    kind, text = page(server, path, PROMETHEUS)
    assert kind == OPENMETRICS
    assert text.endswith("\n# EOF\n")
    families = list(openmetrics.text_string_to_metric_families(text))
    types = {f.name: f.type for f in families}
    units = {f.name: f.unit for f in families}
    if path == "/metrics":
        assert types["nv_inference_count"] == types["nv_inference_request_duration_us"] == "unknown"
        assert types["nereid_exchanges"] == types["nereid_batch_cut"] == "unknown"
        assert types["nereid_label_requests"] == types["nereid_gateway_requests"] == types["nereid_payload_events_sent"] == "counter"
        assert types["asked"] == "counter", "a model's own counter"
        assert units["nereid_request_duration_seconds"] == "seconds" and units["nereid_heap_used_bytes"] == "bytes"
        assert len(families) > 60
    else:
        assert types[":tensorflow:serving:request_count"] == types[":tensorflow:serving:request_log_count"] == "unknown"
    before = series(lines(page(server, path)[1]))
    assert series((s.name, s.labels) for f in families for s in f.samples) == before and len(before) > 5


def test_a_traced_request_is_an_exemplar(server, folder):
    _, text = page(server, "/metrics", OPENMETRICS)
    found = {}
    for family in openmetrics.text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.exemplar:
                assert sample.exemplar.timestamp is None
                assert sample.exemplar.value <= float(sample.labels.get("le", math.inf))
                found.setdefault(sample.name, []).append(sample.exemplar.labels["trace_id"])
    assert sorted(found) == [
        "nereid_batch_size_bucket", "nereid_compute_duration_seconds_bucket", "nereid_label_requests_total",
        "nereid_queue_duration_seconds_bucket", "nereid_request_duration_seconds_bucket",
        "nv_inference_first_response_histogram_ms_bucket"]
    # the file is an array that is closed at the end of the server, and it may lag behind the requests
    def ids():
        return {str(trace["id"]) for trace in json.loads((folder / "trace.json").read_text().rstrip() + "]")}

    until(lambda: all(set(of) <= ids() for of in found.values()), "the traces are written")
    assert "trace_id" not in page(server, "/metrics")[1]


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("accept, chosen", [
    (None, False),
    ("*/*", False),
    ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", False),
    ("application/openmetrics-text", True),
    ("application/openmetrics-text; version=0.0.1", False),
    ("application/openmetrics-text;q=0.4,text/plain;q=0.5", False),
    ("text/plain;q=0.4,application/openmetrics-text;version=1.0.0;q=0.5", True),
    ("application/openmetrics-text;q=0,text/plain;q=0.1", False),
])
def test_the_client_chooses_the_format(server, path, accept, chosen):
    kind, text = page(server, path, accept)
    assert kind == (OPENMETRICS if chosen else TEXT[path])
    assert text.endswith("# EOF\n") == chosen
