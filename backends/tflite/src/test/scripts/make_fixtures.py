# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the models that the tests read: python3 make_fixtures.py [directory]. Needs tensorflow with its converter."""

import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent / "resources" / "models")


def write(name: str, content: bytes) -> None:
    directory = root / name / "1"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "model.tflite").write_bytes(content)


def converted(*functions, model=None):
    return tf.lite.TFLiteConverter.from_concrete_functions(list(functions), model)


class HalfPlusTwo(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def serving(self, x):
        return {"y": x * 0.5 + 2.0}


class Several(tf.Module):
    def __init__(self):
        super().__init__()
        self.weights = tf.Variable(np.arange(12, dtype=np.float32).reshape(4, 3) / 4)

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="rows")])
    def predict(self, rows):
        scores = tf.matmul(rows, self.weights)
        return {"scores": scores, "label": tf.argmax(scores, axis=-1, output_type=tf.int64)}

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="rows")])
    def embed(self, rows):
        return {"embedding": tf.nn.relu(rows)}


def saved(module, signatures):
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        tf.saved_model.save(module, place, signatures=signatures)
        converter = tf.lite.TFLiteConverter.from_saved_model(place, signature_keys=list(signatures))
        return converter.convert()


half = HalfPlusTwo()
write("half_plus_two", saved(half, {"serving_default": half.serving}))
several = Several()
write("several", saved(several, {"serving_default": several.predict, "embed": several.embed}))


# Without signatures, of fixed shape: what older converters wrote.
class Plain(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([1, 4], tf.float32, name="a"), tf.TensorSpec([1, 4], tf.float32, name="b")])
    def call(self, a, b):
        return a + b, a - b


plain = Plain()
write("add_sub", converted(plain.call.get_concrete_function(), model=plain).convert())


# Of one row alone: its sizes stand in the graph.
class Fixed(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([1, 4], tf.float32, name="x")])
    def serving(self, x):
        return {"square": tf.reshape(x * 2 + 1, [1, 2, 2]), "sum": tf.reshape(tf.reduce_sum(x), [1, 1])}


fixed = Fixed()
write("fixed", saved(fixed, {"serving_default": fixed.serving}))


class Sorted(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, name="x")])
    def serving(self, x):
        return {"doubled": x * 2, "long": tf.cast(x, tf.int64), "positive": x > 0}


typed = Sorted()
write("typed", saved(typed, {"serving_default": typed.serving}))


# All in 8 bits, in and out.
tf.random.set_seed(7)
dense = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(3, activation="relu"), tf.keras.layers.Dense(2)])
dense.set_weights([np.arange(12, dtype=np.float32).reshape(4, 3) / 12, np.zeros(3, np.float32),
                   np.arange(6, dtype=np.float32).reshape(3, 2) / 6, np.ones(2, np.float32)])
for kind in (tf.int8, tf.uint8):
    converter = tf.lite.TFLiteConverter.from_keras_model(dense)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([np.random.RandomState(i).rand(1, 4).astype(np.float32)] for i in range(20))
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = kind
    converter.inference_output_type = kind
    write("quantized_" + kind.name, converter.convert())


class Texts(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="texts"), tf.TensorSpec([None], tf.int32, name="which")])
    def serving(self, texts, which):
        return {"chosen": tf.gather(texts, which)}


texts = Texts()
write("texts", saved(texts, {"serving_default": texts.serving}))


# An operator that only TensorFlow has.
class Flex(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def serving(self, x):
        return {"y": tf.strings.as_string(x)}


flex = Flex()
converter = converted(flex.serving.get_concrete_function(), model=flex)
converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
write("flex", converter.convert())


# A loop, to be stopped.
class Loop(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([], tf.int32, name="times")])
    def serving(self, times):
        i = tf.constant(0)
        x = tf.zeros([64, 64])
        i, x = tf.while_loop(lambda i, x: i < times, lambda i, x: (i + 1, tf.sin(tf.matmul(x, x) + 1.0)), [i, x])
        return {"sum": tf.reduce_sum(x)}


loop = Loop()
write("loop", saved(loop, {"serving_default": loop.serving}))


# Operators that XNNPACK runs, and one of 64 bits that it does not have.
class Cnn(tf.Module):
    def __init__(self):
        super().__init__()
        random = np.random.RandomState(5)
        self.first = tf.constant(random.randn(3, 3, 3, 8).astype(np.float32) / 3)
        self.depth = tf.constant(random.randn(3, 3, 8, 1).astype(np.float32) / 3)
        self.last = tf.constant(random.randn(8, 5).astype(np.float32) / 3)

    @tf.function(input_signature=[tf.TensorSpec([None, 16, 16, 3], tf.float32, name="image")])
    def serving(self, image):
        x = tf.nn.relu6(tf.nn.conv2d(image, self.first, strides=2, padding="SAME"))
        x = tf.nn.relu(tf.nn.depthwise_conv2d(x, self.depth, strides=[1, 1, 1, 1], padding="SAME")) + x
        x = tf.matmul(tf.reduce_mean(x, axis=[1, 2]), self.last)
        return {"scores": tf.nn.softmax(x), "label": tf.argmax(x, axis=-1, output_type=tf.int64)}


cnn = Cnn()
write("cnn", saved(cnn, {"serving_default": cnn.serving}))
