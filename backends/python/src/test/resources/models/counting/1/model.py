# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Updates custom metrics and reports its readiness as requested; needs no numpy."""
import os

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.set_max_batch_size(0)
        config.add_input({"name": "WHAT", "data_type": "TYPE_STRING", "dims": [1]})
        config.add_output({"name": "SAID", "data_type": "TYPE_STRING", "dims": [1]})
        return config

    def initialize(self, args):
        self._ready = True
        family = pb_utils.MetricFamily("asked_total", "Requests, by what they asked", pb_utils.MetricFamily.COUNTER)
        self._asked = {what: family.Metric({"what": what, "model": args["model_name"]}) for what in ("count", "value", "bad")}
        self._level = pb_utils.MetricFamily("level", "A level", pb_utils.MetricFamily.GAUGE).Metric()
        self._times = pb_utils.MetricFamily("time_seconds", 'How "long"', pb_utils.MetricFamily.HISTOGRAM).Metric(
            {"kind": 'a "quoted"\none'}, buckets=[0.1, 1, 10])

    def is_ready(self):
        if self._ready == "broken":
            raise ValueError("unknown readiness")
        return self._ready

    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        what, _, rest = bytes(pb_utils.get_input_tensor_by_name(request, "WHAT").raw()[4:]).decode().partition(" ")
        said = "done"
        try:
            if what == "count":
                self._asked["count"].increment(float(rest))
            elif what == "value":
                said = repr(self._asked["count"].value())
            elif what == "level":
                self._level.set(float(rest))
                self._level.increment(-1)
                said = repr(self._level.value())
            elif what == "time":
                for value in rest.split():
                    self._times.observe(float(value))
            elif what == "ready":
                self._ready = {"yes": True, "no": False}.get(rest, rest)
            elif what == "again":
                pb_utils.MetricFamily("asked_total", "Requests, by what they asked", pb_utils.MetricFamily.COUNTER)
            elif what == "die":
                os._exit(3)
            elif what == "eval":
                said = str(eval(rest, {"pb_utils": pb_utils, "self": self}))
        except pb_utils.TritonModelException as e:
            said = str(e)
        said = said.encode()
        return pb_utils.InferenceResponse([
            pb_utils.Tensor.of("SAID", "BYTES", [1], len(said).to_bytes(4, "little") + said)])
