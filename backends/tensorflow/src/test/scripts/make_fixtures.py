# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the small TensorFlow models that the tests serve.

    pip install tensorflow-cpu==2.21.0
    python make_fixtures.py ../resources/models

half_plus_two, half_plus_three and counter have the signatures and give the answers of the models of the same names that
TensorFlow Serving is tested with; they are written anew here. Names inside the graphs are fixed, so that a second run
gives models that do the same, though not the same bytes.
"""

import os
import pathlib
import shutil
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1
info = v1.saved_model.utils.build_tensor_info
signature = v1.saved_model.signature_def_utils.build_signature_def
PREDICT = "tensorflow/serving/predict"
CLASSIFY = "tensorflow/serving/classify"
REGRESS = "tensorflow/serving/regress"


def save_session(target, session, signatures, **more):
    builder = v1.saved_model.builder.SavedModelBuilder(str(target))
    builder.add_meta_graph_and_variables(session, ["serve"], signature_def_map=signatures, **more)
    builder.save()


def half_plus(target, constant):
    """y = x / 2 + constant, y2 and y3 = ... / 2 + 3, with inputs that stand behind the parsing of examples."""
    with v1.Graph().as_default(), v1.Session() as session:
        a = v1.get_variable("a", initializer=tf.constant(0.5), use_resource=False)
        b = v1.get_variable("b", initializer=tf.constant(float(constant)), use_resource=False)
        c = v1.get_variable("c", initializer=tf.constant(3.0), use_resource=False)
        examples = v1.placeholder(tf.string, name="tf_example")
        parsed = v1.parse_example(
            examples,
            {
                "x": v1.FixedLenFeature([1], tf.float32),
                "x2": v1.FixedLenFeature([1], tf.float32, default_value=[0.0]),
            },
        )
        for feature in parsed.values():
            # Nothing is known of the placeholder's rank, as in the models of old.
            feature.set_shape([None, 1])
        x = tf.identity(parsed["x"], name="x")
        x2 = tf.identity(parsed["x2"], name="x2")
        y = tf.add(tf.multiply(a, x), b, name="y")
        y2 = tf.add(tf.multiply(a, x), c, name="y2")
        y3 = tf.add(tf.multiply(a, x2), c, name="y3")
        session.run(v1.global_variables_initializer())
        save_session(
            target,
            session,
            {
                "serving_default": signature({"x": info(x)}, {"y": info(y)}, PREDICT),
                "regress_x_to_y": signature({"inputs": info(examples)}, {"outputs": info(y)}, REGRESS),
                "regress_x_to_y2": signature({"inputs": info(examples)}, {"outputs": info(y2)}, REGRESS),
                "regress_x2_to_y3": signature({"inputs": info(x2)}, {"outputs": info(y3)}, REGRESS),
                "classify_x_to_y": signature({"inputs": info(examples)}, {"scores": info(y)}, CLASSIFY),
                "classify_x2_to_y3": signature({"inputs": info(x2)}, {"scores": info(y3)}, CLASSIFY),
            },
        )


def counter(target):
    """A number that requests change; no signature is the default one."""
    with v1.Graph().as_default(), v1.Session() as session:
        count = v1.get_variable("counter", initializer=tf.constant(0.0), use_resource=True)
        delta = v1.placeholder(tf.float32, shape=[], name="delta")
        one = count.assign_add(1.0, read_value=False)
        more = count.assign_add(delta, read_value=False)
        zero = count.assign(0.0, read_value=False)

        def after(op, name):
            with tf.control_dependencies([op]):
                return tf.identity(count.read_value(), name=name)

        incremented, increased, reset = after(one, "incremented"), after(more, "increased"), after(zero, "reset")
        got = tf.identity(count.read_value(), name="got")
        session.run(v1.global_variables_initializer())
        save_session(
            target,
            session,
            {
                "get_counter": signature({}, {"output": info(got)}, PREDICT),
                "incr_counter": signature({}, {"output": info(incremented)}, PREDICT),
                "incr_counter_by": signature({"delta": info(delta)}, {"output": info(increased)}, PREDICT),
                "reset_counter": signature({}, {"output": info(reset)}, PREDICT),
            },
        )


class Functions(tf.Module):
    """Functions of TensorFlow 2: placeholders with shapes, a loop, an assertion."""

    def __init__(self):
        super().__init__()
        self.weights = tf.Variable([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
    def multiply(self, x):
        return {"product": tf.matmul(x, self.weights), "rows": tf.reduce_sum(x, axis=1)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, name="n")])
    def collatz(self, n):
        steps = tf.zeros_like(n)
        while tf.reduce_any(n > 1):
            steps = tf.where(n > 1, steps + 1, steps)
            n = tf.where(n > 1, tf.where(n % 2 == 0, n // 2, 3 * n + 1), n)
        return {"steps": steps}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def positive(self, x):
        with tf.control_dependencies([tf.debugging.assert_positive(x, message="x must be positive")]):
            return {"root": tf.sqrt(x)}


def functions(target):
    module = Functions()
    tf.saved_model.save(
        module,
        str(target),
        signatures={"serving_default": module.multiply, "collatz": module.collatz, "positive": module.positive},
    )


class Keeper(tf.Module):
    """Remembers what it was given last, numbers and texts, and gives inputs back as they are."""

    def __init__(self):
        super().__init__()
        self.numbers = tf.Variable(tf.zeros([1], tf.float32), shape=tf.TensorShape([None]))
        self.texts = tf.Variable(tf.constant([""]), shape=tf.TensorShape([None]))

    @tf.function(input_signature=[
        tf.TensorSpec([None], tf.float32, name="numbers"), tf.TensorSpec([None], tf.string, name="texts")])
    def keep(self, numbers, texts):
        self.numbers.assign(numbers)
        self.texts.assign(texts)
        return {"numbers": numbers, "texts": texts}

    @tf.function(input_signature=[])
    def kept(self):
        return {"numbers": self.numbers.read_value(), "texts": self.texts.read_value()}


def keeper(target):
    module = Keeper()
    tf.saved_model.save(module, str(target), signatures={"keep": module.keep, "kept": module.kept})


TYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
         "float16", "bfloat16", "float32", "float64", "string"]


def echo(target):
    """Every type, given back as it came."""

    @tf.function(input_signature=[tf.TensorSpec(None, tf.as_dtype(t), name=t) for t in TYPES])
    def same(*tensors):
        return {t + "_out": tf.identity(x) for t, x in zip(TYPES, tensors)}

    module = tf.Module()
    module.same = same
    texts = tf.function(
        lambda text: {"text": tf.identity(text), "length": tf.strings.length(text)},
        input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    module.texts = texts
    tf.saved_model.save(module, str(target), signatures={"serving_default": texts, "types": same})


def graph_def(target):
    """The sum and the difference of two vectors, as a graph without variables."""
    target.mkdir(parents=True)
    with v1.Graph().as_default() as graph:
        first = v1.placeholder(tf.float32, [None, 4], name="INPUT0")
        second = v1.placeholder(tf.float32, [None, 4], name="INPUT1")
        tf.add(first, second, name="OUTPUT0")
        tf.subtract(first, second, name="OUTPUT1")
        (target / "model.graphdef").write_bytes(graph.as_graph_def().SerializeToString())


def two_tags(target):
    """One set of tags besides 'serve', with another number in it."""
    builder = v1.saved_model.builder.SavedModelBuilder(str(target))
    for tags, number in ((["serve"], 1.0), (["serve", "other"], 2.0)):
        with v1.Graph().as_default(), v1.Session() as session:
            n = v1.get_variable("n", initializer=tf.constant(1.0))
            x = v1.placeholder(tf.float32, [None], name="x")
            y = tf.add(x * n, number, name="y")
            session.run(v1.global_variables_initializer())
            signatures = {"serving_default": signature({"x": info(x)}, {"y": info(y)}, PREDICT)}
            if number == 1.0:
                builder.add_meta_graph_and_variables(session, tags, signature_def_map=signatures)
            else:
                builder.add_meta_graph(tags, signature_def_map=signatures)
    builder.save()


def defaults(target):
    """An input with a default value, as signatures may have since TensorFlow 2.12, and a sparse signature."""
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None], name="x")
        by = v1.placeholder(tf.float32, [], name="by")
        y = tf.multiply(x, by, name="y")
        sparse = v1.sparse_placeholder(tf.float32, name="sparse")
        total = tf.identity(v1.sparse_reduce_sum(sparse), name="total")
        session.run(v1.global_variables_initializer())
        default = signature({"x": info(x), "by": info(by)}, {"y": info(y)}, PREDICT)
        default.defaults["by"].CopyFrom(tf.make_tensor_proto(3.0, tf.float32, []))
        save_session(
            target,
            session,
            {
                "serving_default": default,
                "total": signature({"sparse": info(sparse)}, {"total": info(total)}, PREDICT),
            },
        )


def main():
    root = pathlib.Path(sys.argv[1])
    shutil.rmtree(root, ignore_errors=True)
    half_plus(root / "half_plus_two" / "1", 2)
    half_plus(root / "half_plus_three" / "1", 3)
    counter(root / "counter" / "1")
    functions(root / "functions" / "1" / "model.savedmodel")
    keeper(root / "keeper" / "1" / "model.savedmodel")
    echo(root / "echo" / "1" / "model.savedmodel")
    graph_def(root / "graph" / "1")
    two_tags(root / "two_tags" / "1")
    defaults(root / "defaults" / "1")
    for fingerprint in root.rglob("fingerprint.pb"):
        fingerprint.unlink()


main()
