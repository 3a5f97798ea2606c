# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Answers with the numbers of frames that its worker has received and sent, and of the sends among them that are results."""
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "IN", "data_type": "TYPE_INT64", "dims": [-1]})
        config.add_output({"name": "OUT", "data_type": "TYPE_INT64", "dims": [3]})
        return config

    def initialize(self, args):
        worker = pb_utils._worker
        self._counts = counts = [0, 0, 0]
        dispatch, write = worker._dispatch, worker._write

        def counted_dispatch(frame):
            counts[0] += 1
            dispatch(frame)

        def counted_write(connection, message, text=None):
            counts[1] += 1
            counts[2] += message["t"] == "done"
            write(connection, message, text)

        worker._dispatch, worker._write = counted_dispatch, counted_write

    def execute(self, requests):
        data = b"".join(count.to_bytes(8, "little") for count in self._counts)
        return [pb_utils.InferenceResponse([pb_utils.Tensor.of("OUT", "INT64", [3], data)]) for _ in requests]
