# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes TensorFlow's own bytes for this module's tests.

Run with tensorflow 2.21 and tensorflow-serving-api 2.21:  python make_fixtures.py ../resources/io/nereid/tfdata
"""

import os
import sys

import numpy as np
import tensorflow as tf
from tensorflow.core.example import example_pb2
from tensorflow_serving.apis import (
    classification_pb2,
    inference_pb2,
    predict_pb2,
    prediction_log_pb2,
    regression_pb2,
)

out = sys.argv[1]
lines = []


def note(name, message):
    lines.append(f"{name} {message.SerializeToString(deterministic=True).hex()}")


def proto(values, dtype, shape=None):
    return tf.make_tensor_proto(values, dtype=dtype, shape=shape)


def content(values, dtype):
    array = np.array(values, dtype=dtype.as_numpy_dtype)
    p = tf.make_tensor_proto(array)
    for field in p.DESCRIPTOR.fields:
        if field.name.endswith("_val"):
            p.ClearField(field.name)
    p.tensor_content = array.tobytes()
    return p


def typed(values, dtype):
    """As TensorFlow's C++ writes answers: every value in the field of its type."""
    p = tf.make_tensor_proto(np.array(values, dtype=dtype.as_numpy_dtype), shape=None)
    p.ClearField("tensor_content")
    array = np.array(values, dtype=dtype.as_numpy_dtype).ravel()
    if dtype == tf.float32:
        p.ClearField("float_val"), p.float_val.extend(array.tolist())
    elif dtype == tf.float64:
        p.ClearField("double_val"), p.double_val.extend(array.tolist())
    elif dtype in (tf.int8, tf.int16, tf.int32, tf.uint8, tf.uint16):
        p.ClearField("int_val"), p.int_val.extend(array.tolist())
    elif dtype == tf.int64:
        p.ClearField("int64_val"), p.int64_val.extend(array.tolist())
    elif dtype == tf.uint32:
        p.ClearField("uint32_val"), p.uint32_val.extend(array.tolist())
    elif dtype == tf.uint64:
        p.ClearField("uint64_val"), p.uint64_val.extend(array.tolist())
    elif dtype == tf.bool:
        p.ClearField("bool_val"), p.bool_val.extend(array.tolist())
    elif dtype in (tf.float16, tf.bfloat16):
        p.ClearField("half_val"), p.half_val.extend(array.view(np.uint16).tolist())
    else:
        raise ValueError(dtype)
    return p


VALUES = {
    tf.float32: [[1.0, -2.5], [3.4028235e38, 0.0]],
    tf.float64: [[1.0, -2.5], [1e300, 0.0]],
    tf.int8: [[1, -2], [127, -128]],
    tf.int16: [[1, -2], [32767, -32768]],
    tf.int32: [[1, -2], [2147483647, -2147483648]],
    tf.int64: [[1, -2], [9223372036854775807, -9223372036854775808]],
    tf.uint8: [[1, 2], [255, 0]],
    tf.uint16: [[1, 2], [65535, 0]],
    tf.uint32: [[1, 2], [4294967295, 0]],
    tf.uint64: [[1, 2], [18446744073709551615, 0]],
    tf.bool: [[True, False], [True, True]],
    tf.float16: [[1.0, -2.5], [65504.0, 0.0]],
    tf.bfloat16: [[1.0, -2.5], [256.0, 0.0]],
}
for dtype, values in VALUES.items():
    note(f"content/{dtype.name}", content(values, dtype))
    note(f"typed/{dtype.name}", typed(values, dtype))
note("typed/string", proto([[b"a", b""], [b"\x00\xff", b"four"]], tf.string))
strings = tf.constant([["a", ""], [b"\x00\xff", "four"]])
as_content = tf.make_tensor_proto([[b"a", b""], [b"\x00\xff", b"four"]])
del as_content.string_val[:]
as_content.tensor_content = b"\x01\x00\x02\x04" + b"a" + b"\x00\xff" + b"four"
note("content/string", as_content)
note("scalar/float", proto(1.5, tf.float32))
note("broadcast/float", proto([7.0], tf.float32, [2, 3]))
short = proto([1.0, 2.0], tf.float32)
short.tensor_content = b""
del short.float_val[:]
short.float_val.extend([1.0, 2.0])
short.tensor_shape.CopyFrom(tf.TensorShape([5]).as_proto())
note("short/float", short)
empty = tf.make_tensor_proto(np.zeros((2, 2), np.int64))
empty.ClearField("tensor_content"), empty.ClearField("int64_val")
note("empty/int64", empty)
note("zero/float", tf.make_tensor_proto(np.zeros((0, 3), np.float32)))

example = tf.train.Example(
    features=tf.train.Features(
        feature={
            "x": tf.train.Feature(float_list=tf.train.FloatList(value=[1.5, -2.0])),
            "n": tf.train.Feature(int64_list=tf.train.Int64List(value=[3, -1])),
            "s": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"a", b"\xff\x00"])),
        }
    )
)
context = tf.train.Example(
    features=tf.train.Features(
        feature={
            "x": tf.train.Feature(float_list=tf.train.FloatList(value=[9.0])),
            "c": tf.train.Feature(int64_list=tf.train.Int64List(value=[5])),
        }
    )
)
note("example", example)
note("context", context)
merged = tf.train.Example()
merged.ParseFromString(context.SerializeToString() + example.SerializeToString())
note("merged", merged)


def spec(message, signature="", version=None, label=None):
    message.name = "half_plus_two"
    message.signature_name = signature
    if version is not None:
        message.version.value = version
    if label is not None:
        message.version_label = label


request = predict_pb2.PredictRequest()
spec(request.model_spec, "serving_default", 123)
request.inputs["x"].CopyFrom(proto([1.0, 2.0, 5.0], tf.float32))
request.inputs["s"].CopyFrom(proto([b"p", b"qq"], tf.string))
request.output_filter.append("y")
note("predict/request", request)
response = predict_pb2.PredictResponse()
spec(response.model_spec, "serving_default", 123)
response.outputs["y"].CopyFrom(typed([2.5, 3.0, 4.5], tf.float32))
note("predict/response", response)

classify = classification_pb2.ClassificationRequest()
spec(classify.model_spec, "classify_x_to_y", label="stable")
classify.input.example_list_with_context.examples.add().CopyFrom(example)
classify.input.example_list_with_context.context.CopyFrom(context)
note("classify/request", classify)
regress = regression_pb2.RegressionRequest()
spec(regress.model_spec, "regress_x_to_y")
regress.input.example_list.examples.add().CopyFrom(example)
regress.input.example_list.examples.add().CopyFrom(example)
note("regress/request", regress)
multi = inference_pb2.MultiInferenceRequest()
for signature, method in (("regress_x_to_y", "regress"), ("classify_x_to_y", "classify")):
    task = multi.tasks.add()
    spec(task.model_spec, signature)
    task.method_name = "tensorflow/serving/" + method
multi.input.example_list.examples.add().CopyFrom(example)
note("multi/request", multi)

logs = []
log = prediction_log_pb2.PredictionLog()
spec(log.log_metadata.model_spec, "serving_default", 123)
log.log_metadata.sampling_config.sampling_rate = 0.25
log.log_metadata.timestamp_secs = 1700000000
log.predict_log.request.CopyFrom(request)
log.predict_log.response.CopyFrom(response)
logs.append(("log/predict", log))
log = prediction_log_pb2.PredictionLog()
log.classify_log.request.CopyFrom(classify)
logs.append(("log/classify", log))
log = prediction_log_pb2.PredictionLog()
log.regress_log.request.CopyFrom(regress)
logs.append(("log/regress", log))
log = prediction_log_pb2.PredictionLog()
log.multi_inference_log.request.CopyFrom(multi)
logs.append(("log/multi", log))
log = prediction_log_pb2.PredictionLog()
log.session_run_log.request.target.append("t")
logs.append(("log/session", log))
log = prediction_log_pb2.PredictionLog()
log.predict_streamed_log.SetInParent()
logs.append(("log/streamed", log))
with tf.io.TFRecordWriter(os.path.join(out, "records.tfrecord")) as writer:
    for name, log in logs:
        note(name, log)
        writer.write(log.SerializeToString(deterministic=True))

with open(os.path.join(out, "messages.txt"), "w") as f:
    f.write("\n".join(lines) + "\n")
