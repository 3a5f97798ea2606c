# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes requests and answers as the published Python client has them.

Run with tensorflow 2.21 and tensorflow-serving-api 2.21:
    python make_fixtures.py ../resources/io/nereid/protocols/v1/grpc.txt
"""

import sys

import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    model_management_pb2,
    predict_pb2,
    regression_pb2,
)
from tensorflow_serving.config import model_server_config_pb2

lines = []


def note(name, message):
    lines.append(f"{name} {message.SerializeToString(deterministic=True).hex()}")


def spec(message, signature="", version=None, label=None, name="half"):
    message.name = name
    message.signature_name = signature
    if version is not None:
        message.version.value = version
    if label is not None:
        message.version_label = label


def floats(values, typed=True):
    p = tf.make_tensor_proto(np.array(values, np.float32))
    if typed:
        p.ClearField("tensor_content"), p.ClearField("float_val")
        p.float_val.extend(np.array(values, np.float32).ravel().tolist())
    return p


for typed in (True, False):
    request = predict_pb2.PredictRequest()
    spec(request.model_spec)
    request.inputs["x"].CopyFrom(floats([1.0, 2.0, 5.0], typed))
    note(f"predict/request/{'typed' if typed else 'content'}", request)
    response = predict_pb2.PredictResponse()
    spec(response.model_spec, "serving_default", 3)
    response.outputs["y"].CopyFrom(floats([2.5, 3.0, 4.5], typed))
    note(f"predict/response/{'typed' if typed else 'content'}", response)


def examples(message, values):
    for value in values:
        message.example_list.examples.add().features.feature["x"].float_list.value.append(value)


classify = classification_pb2.ClassificationRequest()
spec(classify.model_spec, "classify_x_to_y", 3)
examples(classify.input, [20.0, 10.0])
note("classify/request", classify)
answer = classification_pb2.ClassificationResponse()
spec(answer.model_spec, "classify_x_to_y", 3)
for score in (12.0, 7.0):
    answer.result.classifications.add().classes.add().score = score
note("classify/response", answer)

regress = regression_pb2.RegressionRequest()
spec(regress.model_spec, "regress_x_to_y")
examples(regress.input, [80.0, -4.0])
note("regress/request", regress)
answer = regression_pb2.RegressionResponse()
spec(answer.model_spec, "regress_x_to_y", 3)
for value in (42.0, 0.0):
    answer.result.regressions.add().value = value
note("regress/response", answer)

multi = inference_pb2.MultiInferenceRequest()
answer = inference_pb2.MultiInferenceResponse()
for signature, method in (("regress_x_to_y", "regress"), ("classify_x_to_y", "classify")):
    task = multi.tasks.add()
    spec(task.model_spec, signature)
    task.method_name = "tensorflow/serving/" + method
    result = answer.results.add()
    spec(result.model_spec, signature, 3)
    if method == "regress":
        result.regression_result.regressions.add().value = 12.0
    else:
        result.classification_result.classifications.add().classes.add().score = 12.0
examples(multi.input, [20.0])
note("multi/request", multi)
note("multi/response", answer)

request = get_model_metadata_pb2.GetModelMetadataRequest()
spec(request.model_spec)
request.metadata_field.append("signature_def")
note("metadata/request", request)
answer = get_model_metadata_pb2.GetModelMetadataResponse()
spec(answer.model_spec, version=3)
signatures = get_model_metadata_pb2.SignatureDefMap()


def signature(name, method):
    s = signatures.signature_def[name]
    for tensors, alias in ((s.inputs, "x"), (s.outputs, "y")):
        tensors[alias].name = alias + ":0"
        tensors[alias].dtype = tf.float32.as_datatype_enum
        tensors[alias].tensor_shape.CopyFrom(tf.TensorShape([None]).as_proto())
    s.method_name = "tensorflow/serving/" + method


signature("serving_default", "predict")
signature("regress_x_to_y", "regress")
signature("classify_x_to_y", "classify")
answer.metadata["signature_def"].Pack(signatures, deterministic=True)
note("metadata/response", answer)

request = get_model_status_pb2.GetModelStatusRequest()
spec(request.model_spec)
note("status/request", request)
answer = get_model_status_pb2.GetModelStatusResponse()
for version, state, code, text in ((5, 20, 0, ""), (3, 30, 0, ""), (1, 50, 2, "no such file")):
    status = answer.model_version_status.add()
    status.version = version
    status.state = state
    status.status.error_code = code
    status.status.error_message = text
    status.status.SetInParent()
note("status/response", answer)

request = model_management_pb2.ReloadConfigRequest()
a = request.config.model_config_list.config.add()
a.name = "a"
a.base_path = "/models/a"
a.model_platform = "tensorflow"
a.model_version_policy.specific.versions.extend([1, 300])
a.version_labels["stable"] = 1
a.version_labels["canary"] = 300
a.logging_config.log_collector_config.type = "tfrecord"
a.logging_config.log_collector_config.filename_prefix = "/logs/a"
a.logging_config.sampling_config.sampling_rate = 0.5
b = request.config.model_config_list.config.add()
b.name = "b"
b.base_path = "/models/b"
b.model_type = model_server_config_pb2.TENSORFLOW
b.model_version_policy.latest.num_versions = 2
c = request.config.model_config_list.config.add()
c.name = "c"
c.model_version_policy.all.SetInParent()
note("reload/request", request)
answer = model_management_pb2.ReloadConfigResponse()
answer.status.SetInParent()
note("reload/response", answer)
request = model_management_pb2.ReloadConfigRequest()
request.config.custom_model_config.type_url = "x"
note("reload/custom", request)
request = model_management_pb2.ReloadConfigRequest()
request.config.model_config_list.SetInParent()
request.metric_names.append(":m")
note("reload/metric", request)

with open(sys.argv[1], "w") as f:
    f.write("\n".join(lines) + "\n")
