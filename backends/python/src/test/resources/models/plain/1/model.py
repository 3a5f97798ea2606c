# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Doubles INT32 numbers without numpy; configures its inputs and outputs itself."""
import struct

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(auto_complete_model_config):
        auto_complete_model_config.add_input({"name": "IN", "data_type": "TYPE_INT32", "dims": [4]})
        auto_complete_model_config.add_output({"name": "DOUBLE", "data_type": "TYPE_INT32", "dims": [4]})
        auto_complete_model_config.add_output({"name": "SAME", "data_type": "TYPE_INT32", "dims": [4]})
        auto_complete_model_config.set_max_batch_size(0)
        return auto_complete_model_config

    # One expression to the end of the file, so that a truncated file is not a valid program.
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([
                pb_utils.Tensor.of(
                    "DOUBLE", "TYPE_INT32", [4],
                    struct.pack("<4i", *(2 * n for n in struct.unpack("<4i", request.inputs()[0].raw())))),
                pb_utils.Tensor.of("SAME", "TYPE_INT32", [4], bytes(request.inputs()[0].raw())),
            ])
            for request in requests
        ]
