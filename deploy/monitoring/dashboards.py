#!/usr/bin/env python3
# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
Writes the Grafana dashboards of this folder:

    python3 deploy/monitoring/dashboards.py            writes dashboards/*.json
    python3 deploy/monitoring/dashboards.py --check    ends with 1 when a file is not what it would write
"""

import json
import pathlib
import sys

FOLDER = pathlib.Path(__file__).parent / "dashboards"
WIDTH = 24
SELECTED = 'job=~"$job",instance=~"$instance"'
OF_MODEL = SELECTED + ',model=~"$model"'


class Dashboard:
    def __init__(self, name, title, description, *variables):
        self.name = name
        self.panels = []
        self.x = self.y = self.height = 0
        self.content = {
            "uid": f"nereid-{name}",
            "title": f"Nereid / {title}",
            "description": description,
            "tags": ["nereid"],
            "schemaVersion": 39,
            "editable": True,
            "refresh": "30s",
            "time": {"from": "now-1h", "to": "now"},
            "timezone": "browser",
            "templating": {"list": [_source(), *variables]},
            "panels": self.panels,
        }

    def row(self, title):
        self._end_line()
        self.panels.append({"type": "row", "title": title, "collapsed": False, "gridPos": _at(0, self.y, WIDTH, 1), "panels": []})
        self.y += 1

    def graph(self, title, unit, *targets, description="", width=8, stacked=False):
        """A panel of lines; a target is a query, or a query with the name of its lines."""
        custom = {"fillOpacity": 20 if stacked else 5, "showPoints": "never"}
        if stacked:
            custom["stacking"] = {"mode": "normal"}
        self._add("timeseries", title, unit, targets, description, width, 7, {"custom": custom})

    def number(self, title, unit, query, description="", thresholds=None):
        steps = [{"color": "green", "value": None}]
        for value, color in thresholds or []:
            steps.append({"color": color, "value": value})
        self._add("stat", title, unit, [(query, "")], description, 4, 4, {"thresholds": {"mode": "absolute", "steps": steps}})

    def _add(self, kind, title, unit, targets, description, width, height, defaults):
        if self.x + width > WIDTH:
            self._end_line()
        pairs = [target if isinstance(target, tuple) else (target, "") for target in targets]
        self.panels.append(
            {
                "type": kind,
                "title": title,
                "description": description,
                "datasource": {"type": "prometheus", "uid": "${datasource}"},
                "gridPos": _at(self.x, self.y, width, height),
                "fieldConfig": {"defaults": {"unit": unit, **defaults}, "overrides": []},
                "options": {"legend": {"displayMode": "list", "placement": "bottom"}} if kind == "timeseries" else {"reduceOptions": {"calcs": ["lastNotNull"]}},
                "targets": [
                    {"refId": chr(ord("A") + i), "expr": query, "legendFormat": name or "__auto", "instant": kind == "stat"}
                    for i, (query, name) in enumerate(pairs)
                ],
            }
        )
        self.x += width
        self.height = max(self.height, height)

    def _end_line(self):
        self.y += self.height
        self.x = self.height = 0

    def text(self):
        for number, panel in enumerate(self.panels, 1):
            panel["id"] = number
        return json.dumps(self.content, indent=1) + "\n"


def _at(x, y, width, height):
    return {"x": x, "y": y, "w": width, "h": height}


def _source():
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "current": {}}


def variable(name, query, many=True):
    return {
        "name": name,
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "query": query,
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "includeAll": many,
        "multi": many,
        "allValue": ".*" if many else None,
        "current": {"text": "All", "value": "$__all"} if many else {},
    }


def rate(metric, selection, by=""):
    inner = f"rate({metric}{{{selection}}}[$__rate_interval])"
    return f"sum by ({by}) ({inner})" if by else f"sum({inner})"


def quantile(share, metric, selection, by="model"):
    return f"histogram_quantile({share}, sum by (le{', ' + by if by else ''}) (rate({metric}_bucket{{{selection}}}[$__rate_interval])))"


JOB = variable("job", "label_values(nereid_connections, job)")
INSTANCE = variable("instance", 'label_values(nereid_connections{job=~"$job"}, instance)')
MODEL = variable("model", 'label_values(nv_inference_count{job=~"$job"}, model)')


def overview():
    board = Dashboard("overview", "overview", "Requests, errors, time and memory of all models and servers.", JOB, INSTANCE, MODEL)
    board.row("Now")
    board.number("Requests", "reqps", rate("nv_inference_request_success", OF_MODEL) + " + " + rate("nv_inference_request_failure", OF_MODEL))
    board.number(
        "Errors",
        "percentunit",
        f"{rate('nv_inference_request_failure', OF_MODEL)} / clamp_min({rate('nv_inference_request_success', OF_MODEL)}"
        f" + {rate('nv_inference_request_failure', OF_MODEL)}, 1e-9)",
        "Requests that failed, of all.",
        [(0.01, "yellow"), (0.05, "red")],
    )
    board.number("99 % faster than", "s", quantile(0.99, "nereid_request_duration_seconds", OF_MODEL, ""))
    board.number("Waiting", "short", f"sum(nv_inference_pending_request_count{{{OF_MODEL}}})", "Requests in the queues of models.")
    board.number("Models", "short", f"count(count by (model) (nv_inference_count{{{SELECTED}}}))")
    board.number("Servers", "short", f"count(nereid_connections{{{SELECTED}}})")
    board.row("Requests")
    board.graph("Requests by model", "reqps", (rate("nv_inference_request_success", OF_MODEL, "model"), "{{model}}"), stacked=True)
    board.graph("Failures by reason", "reqps", (rate("nv_inference_request_failure", OF_MODEL, "reason"), "{{reason}}"), stacked=True,
                description="REJECTED: refused by a full queue or a time limit; BACKEND: the model failed; OTHER: mostly wrong inputs.")  # fmt: skip
    board.graph(
        "Time of requests, all models", "s",
        (quantile(0.5, "nereid_request_duration_seconds", OF_MODEL, ""), "50 %"),
        (quantile(0.95, "nereid_request_duration_seconds", OF_MODEL, ""), "95 %"),
        (quantile(0.99, "nereid_request_duration_seconds", OF_MODEL, ""), "99 %"),
    )  # fmt: skip
    board.graph("Time of requests by model, 99 %", "s", (quantile(0.99, "nereid_request_duration_seconds", OF_MODEL), "{{model}}"))
    board.graph("Rows computed by model", "short", (rate("nv_inference_count", OF_MODEL, "model"), "{{model}}"))
    board.graph("Waiting by model", "short", (f"sum by (model) (nv_inference_pending_request_count{{{OF_MODEL}}})", "{{model}}"))
    board.row("Servers")
    board.graph("CPU of the machine", "percentunit", (f"nv_cpu_utilization{{{SELECTED}}}", "{{instance}}"))
    board.graph(
        "Memory", "bytes",
        (f"process_resident_memory_bytes{{{SELECTED}}}", "resident {{instance}}"),
        (f"nereid_heap_used_bytes{{{SELECTED}}}", "heap {{instance}}"),
        (f"nereid_direct_memory_bytes{{{SELECTED}}}", "direct {{instance}}"),
        (f"nereid_memory_reserved_bytes{{{SELECTED}}}", "models {{instance}}"),
    )  # fmt: skip
    board.graph("Memory by model", "bytes", (f"sum by (model) (nereid_model_memory_bytes{{{OF_MODEL}}})", "{{model}}"), stacked=True)
    board.graph("Connections", "short", (f"nereid_connections{{{SELECTED}}}", "{{instance}}"))
    board.graph("Requests in flight", "short", (f"nereid_exchanges_in_flight{{{SELECTED}}}", "{{instance}}"))
    board.graph("Bytes of requests in flight", "bytes", (f"nereid_request_bytes_in_flight{{{SELECTED}}}", "{{instance}}"))
    board.graph(
        "Refused", "reqps",
        (rate("nereid_exchanges_rejected", SELECTED, "instance"), "before the body {{instance}}"),
        (rate("nereid_connections_refused_total", SELECTED, "instance"), "connections {{instance}}"),
    )  # fmt: skip
    board.graph("Unexpected exceptions", "short", (f"sum by (instance) (increase(nereid_uncaught_exceptions_total{{{SELECTED}}}[$__rate_interval]))", "{{instance}}"),
                description="Bugs of the server, a plugin or a model in Java: the log has their stacks.")  # fmt: skip
    return board


def model():
    one = variable("model", 'label_values(nv_inference_count{job=~"$job"}, model)', many=False)
    board = Dashboard("model", "one model", "Where the time of one model's requests goes, by version.", JOB, INSTANCE, one)
    selection = SELECTED + ',model="$model"'
    board.row("Requests")
    board.graph("Requests by version", "reqps", (rate("nv_inference_request_success", selection, "version"), "{{version}}"), stacked=True)
    board.graph("Failures", "reqps", (rate("nv_inference_request_failure", selection, "version, reason"), "{{reason}} {{version}}"), stacked=True)
    board.graph("In flight and waiting", "short",
                (f"sum by (version) (nereid_inference_in_flight{{{selection}}})", "in flight {{version}}"),
                (f"sum by (version) (nv_inference_pending_request_count{{{selection}}})", "waiting {{version}}"))  # fmt: skip
    board.row("Time")
    for title, metric in (("Request", "request"), ("Queue", "queue"), ("Run", "compute")):
        name = f"nereid_{metric}_duration_seconds"
        board.graph(
            f"{title}", "s",
            (quantile(0.5, name, selection, "version"), "50 % {{version}}"),
            (quantile(0.95, name, selection, "version"), "95 % {{version}}"),
            (quantile(0.99, name, selection, "version"), "99 % {{version}}"),
        )  # fmt: skip
    parts = [
        (f"{rate('nv_inference_' + part + '_duration_us', selection)} / clamp_min({rate('nv_inference_request_success', selection)}, 1e-9) / 1e6", name)
        for part, name in (("queue", "queue"), ("compute_input", "inputs"), ("compute_infer", "run"), ("compute_output", "outputs"))
    ]
    board.graph("Mean time of a request by part", "s", *parts, stacked=True, width=12)
    board.graph("Time of requests, distribution", "short", (f"sum by (le) (rate(nereid_request_duration_seconds_bucket{{{selection}}}[$__rate_interval]))", "{{le}}"), width=12)
    board.row("Versions")
    board.graph("Time to load", "s", (f"nv_model_load_duration_secs{{{selection}}}", "{{version}} {{instance}}"))
    board.graph("Memory", "bytes", (f"nereid_model_memory_bytes{{{selection}}}", "{{version}} {{instance}}"))
    board.graph("Rows of a run", "short", (f"{rate('nv_inference_count', selection, 'version')} / clamp_min({rate('nv_inference_exec_count', selection, 'version')}, 1e-9)", "{{version}}"))
    return board


def batching():
    board = Dashboard("batching", "batching", "How requests become batches, and what that costs.", JOB, INSTANCE, MODEL)
    board.row("Batches")
    board.graph("Rows of a run, mean", "short", (f"{rate('nv_inference_count', OF_MODEL, 'model')} / clamp_min({rate('nv_inference_exec_count', OF_MODEL, 'model')}, 1e-9)", "{{model}}"))
    board.graph("Rows of a run, 95 %", "short", (quantile(0.95, "nereid_batch_size", OF_MODEL), "{{model}}"))
    board.graph("Runs", "ops", (rate("nv_inference_exec_count", OF_MODEL, "model"), "{{model}}"))
    board.graph("Why batches were closed", "ops", (rate("nereid_batch_cut", OF_MODEL, "reason"), "{{reason}}"), stacked=True, width=12)
    board.graph("Why batches were closed, by model", "ops", (rate("nereid_batch_cut", OF_MODEL, "model, reason"), "{{model}} {{reason}}"), width=12)
    board.row("Cost")
    board.graph("Time in the queue, 50 %", "s", (quantile(0.5, "nereid_queue_duration_seconds", OF_MODEL), "{{model}}"))
    board.graph("Time in the queue, 99 %", "s", (quantile(0.99, "nereid_queue_duration_seconds", OF_MODEL), "{{model}}"))
    board.graph("Share of the queue in a request", "percentunit",
                (f"{rate('nv_inference_queue_duration_us', OF_MODEL, 'model')} / clamp_min({rate('nv_inference_request_duration_us', OF_MODEL, 'model')}, 1e-9)", "{{model}}"))  # fmt: skip
    board.graph("Time of a run, 50 %", "s", (quantile(0.5, "nereid_compute_duration_seconds", OF_MODEL), "{{model}}"))
    board.graph("Time of a row", "s",
                (f"{rate('nv_inference_compute_infer_duration_us', OF_MODEL, 'model')} / clamp_min({rate('nv_inference_count', OF_MODEL, 'model')}, 1e-9) / 1e6", "{{model}}"))  # fmt: skip
    board.graph("Refused by full queues", "reqps", (rate("nv_inference_request_failure", OF_MODEL + ',reason="REJECTED"', "model"), "{{model}}"))
    return board


def control_plane():
    gateway = 'job=~"$job"'
    job = variable("job", "label_values(nereid_gateway_requests_total, job)")
    board = Dashboard("control-plane", "control plane", "Gateways and operators: requests by service, activation, reconciliation.", job)
    board.row("Gateway")
    board.graph("Requests by service", "reqps", (rate("nereid_gateway_requests_total", gateway, "service"), "{{service}}"), stacked=True)
    board.graph("Requests by revision", "reqps", (rate("nereid_gateway_requests_total", gateway, "revision"), "{{revision}}"), stacked=True)
    board.graph("Refused", "reqps", (rate("nereid_gateway_refused_total", gateway, "service"), "{{service}}"))
    board.graph("In flight", "short", (f"sum by (revision) (nereid_gateway_in_flight{{{gateway}}})", "{{revision}}"))
    board.graph("Waiting", "short", (f"sum by (revision) (nereid_gateway_waiting{{{gateway}}})", "{{revision}}"),
                description="Requests that are held until a revision has a replica, or a permit of its limit.")  # fmt: skip
    board.graph("Held, sent again", "reqps",
                (rate("nereid_gateway_held_total", gateway, "revision"), "held {{revision}}"),
                (rate("nereid_gateway_retried_total", gateway, "revision"), "sent again {{revision}}"))  # fmt: skip
    operator = 'job=~".+"'
    board.row("Operator")
    board.graph("Reconciliations", "ops", (rate("nereid_operator_reconciliations_total", operator, "result"), "{{result}}"), stacked=True)
    board.graph("Time of a reconciliation", "s",
                (f"{rate('nereid_operator_reconciliation_seconds_total', operator)} / clamp_min({rate('nereid_operator_reconciliations_total', operator)}, 1e-9)", "mean"))  # fmt: skip
    board.graph("Requests to the API server", "ops", (rate("nereid_operator_api_requests_total", operator, "verb, kind"), "{{verb}} {{kind}}"), stacked=True)
    board.graph("Leader", "short", ("nereid_operator_leader", "{{instance}}"))
    return board


def main():
    wrong = []
    for board in (overview(), model(), batching(), control_plane()):
        path = FOLDER / f"{board.name}.json"
        if "--check" in sys.argv:
            if not path.exists() or path.read_text(encoding="utf-8") != board.text():
                wrong.append(path.name)
        else:
            path.write_text(board.text(), encoding="utf-8")
    if wrong:
        sys.exit(f"dashboards: {', '.join(wrong)} differ; write them: python3 deploy/monitoring/dashboards.py")


if __name__ == "__main__":
    main()
