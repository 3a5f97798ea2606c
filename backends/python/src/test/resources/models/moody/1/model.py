# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Does what the request's text names: fails in many ways, describes the request, is slow, dies. Needs no numpy."""
import json
import os
import struct
import sys
import time

import triton_python_backend_utils as pb_utils


def text(name, value):
    data = value.encode("utf-8")
    return pb_utils.Tensor.of(name, "TYPE_STRING", [1], struct.pack("<I", len(data)) + data)


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(auto_complete_model_config):
        auto_complete_model_config.add_input({"name": "MOOD", "data_type": "TYPE_STRING", "dims": [1]})
        auto_complete_model_config.add_output({"name": "SAID", "data_type": "TYPE_STRING", "dims": [1]})
        return auto_complete_model_config

    def initialize(self, args):
        self.args = args
        print("moody begins")

    def execute(self, requests):
        responses = []
        for request in requests:
            mood = bytes(request.inputs()[0].raw())[4:].decode("utf-8")
            answer = getattr(self, mood)(request)
            if not isinstance(answer, list):
                answer = [answer]
            responses += answer
        return responses if responses != ["nothing"] else None

    def say(self, value):
        return pb_utils.InferenceResponse([text("SAID", value)])

    def about(self, request):
        return pb_utils.InferenceResponse([text("SAID", json.dumps({
            "id": request.request_id(),
            "correlation": request.correlation_id(),
            "flags": request.flags(),
            "timeout": request.timeout(),
            "parameters": json.loads(request.parameters()),
            "outputs": list(request.requested_output_names()),
            "instance": self.args["model_instance_name"],
            "kind": self.args["model_instance_kind"],
            "version": self.args["model_version"],
            "config": json.loads(self.args["model_config"]),
            "python": sys.executable,
        }))], parameters={"text": "é", "number": 7, "yes": True, "half": 0.5})

    def pid(self, request):
        return self.say(str(os.getpid()))

    def error(self, request):
        return pb_utils.InferenceResponse(error=pb_utils.TritonError("I do not like it", pb_utils.TritonError.NOT_FOUND))

    def raises(self, request):
        raise ValueError("what a day")

    def none(self, request):
        return None

    def too_many(self, request):
        return [self.say("a"), self.say("b")]

    def no_list(self, request):
        return "nothing"

    def wrong_type(self, request):
        return pb_utils.InferenceResponse([pb_utils.Tensor.of("SAID", "TYPE_INT8", [1], b"1")])

    def unknown_output(self, request):
        return pb_utils.InferenceResponse([text("OTHER", "x"), text("SAID", "only me")])

    def numpy(self, request):
        request.inputs()[0].as_numpy()
        return self.say("numpy is there")

    def cancelled(self, request):
        until = time.time() + 20
        while time.time() < until:
            if request.is_cancelled():
                return pb_utils.InferenceResponse(error=pb_utils.TritonError("gone", pb_utils.TritonError.CANCELLED))
            time.sleep(0.01)
        return self.say("not cancelled")

    def sender(self, request):
        request.get_response_sender().send(self.say("sent"), pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return "nothing"

    def logs(self, request):
        pb_utils.Logger.log_warn("a warning from moody")
        print("a line from moody")
        return self.say("logged")

    def crash(self, request):
        os.kill(os.getpid(), 9)

    def exit(self, request):
        print("moody has had enough", flush=True)
        os._exit(3)

    def child(self, request):
        import subprocess

        return self.say(str(subprocess.Popen(["sleep", "600"]).pid))
