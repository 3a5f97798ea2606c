# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
Makes the models of the workloads, and the answer of each to one request, by the library that the model is of:

    python make_models.py TARGET MINILM_ONNX [WORKLOAD…]

TARGET/WORKLOAD gets the model's file, spec.json (names, types, shapes, what kind of model it is) and the raw values of each
tensor as NAME.in.bin and NAME.out.bin. Everything is seeded; nothing is downloaded. ResNet-18 has its architecture, with random weights.
"""

import json
import os
import pathlib
import shutil
import struct
import sys
import tempfile

import numpy as np

if os.environ.get("PEERS_LIBRARY"):
    # Behind the packages of the environment, as in servers/models.py.
    sys.path.append(os.environ["PEERS_LIBRARY"])

HERE = pathlib.Path(__file__).resolve().parent
SEED = 20
TYPES = {"int32": "INT32", "int64": "INT64", "float32": "FP32", "object": "BYTES"}
TOKENS = 64


def content(values):
    """The bytes of an array; texts as in the Open Inference Protocol, each behind its length."""
    if values.dtype != object:
        return values.tobytes()
    texts = [str(t).encode() for t in values.reshape(-1)]
    return b"".join(struct.pack("<I", len(t)) + t for t in texts)


def write(directory, kind, file, inputs, outputs, max_batch_size, tolerance, dims=None, more=None):
    """
    Writes the spec and the tensors of a workload: inputs and outputs are arrays by name, dims what the model declares by name, more
    what else the spec has.
    """

    def described(arrays, suffix):
        tensors = []
        for name, values in arrays.items():
            values = np.ascontiguousarray(values)
            (directory / f"{name}.{suffix}.bin").write_bytes(content(values))
            described = {"name": name, "datatype": TYPES[values.dtype.name], "shape": list(values.shape)}
            declared = (dims or {}).get(name, values.shape[1:] if max_batch_size > 0 else values.shape)
            tensors.append(described | {"dims": list(declared)})
        return tensors

    spec = {"kind": kind, "file": file, "inputs": described(inputs, "in"), "outputs": described(outputs, "out")}
    spec |= {"max_batch_size": max_batch_size, "tolerance": tolerance} | (more or {})
    (directory / "spec.json").write_text(json.dumps(spec, indent=1), encoding="utf-8")


def by_onnxruntime(directory, inputs):
    """The outputs of the directory's model.onnx by name."""
    import onnxruntime

    session = onnxruntime.InferenceSession(directory / "model.onnx", providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))


def tiny(directory, _):
    """Sum and difference of two vectors of 16 INT32."""
    from onnx import TensorProto, helper, save

    def vector(name):
        return helper.make_tensor_value_info(name, TensorProto.INT32, ["batch", 16])

    nodes = [helper.make_node("Add", ["INPUT0", "INPUT1"], ["OUTPUT0"]), helper.make_node("Sub", ["INPUT0", "INPUT1"], ["OUTPUT1"])]
    graph = helper.make_graph(nodes, "tiny", [vector("INPUT0"), vector("INPUT1")], [vector("OUTPUT0"), vector("OUTPUT1")])
    save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 14)]), directory / "model.onnx")
    inputs = {"INPUT0": np.arange(16, dtype=np.int32)[None], "INPUT1": np.full((1, 16), 3, np.int32)}
    write(directory, "onnx", "model.onnx", inputs, by_onnxruntime(directory, inputs), 8, 0)


def python(directory, _):
    """The same in Python: the class that servers/triton/model.py makes of it."""
    inputs = {"INPUT0": np.arange(16, dtype=np.int32)[None], "INPUT1": np.full((1, 16), 3, np.int32)}
    outputs = {"OUTPUT0": inputs["INPUT0"] + inputs["INPUT1"], "OUTPUT1": inputs["INPUT0"] - inputs["INPUT1"]}
    write(directory, "python", "", inputs, outputs, 8, 0)


def large(directory, _):
    """An FP32 tensor of 4.8 MB, there and back."""
    from onnx import TensorProto, helper, save

    of, to = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [8, 3 * 224 * 224]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "large", [of], [to])
    save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 14)]), directory / "model.onnx")
    values = np.random.default_rng(SEED).random((8, 3 * 224 * 224), dtype=np.float32)
    write(directory, "onnx", "model.onnx", {"x": values}, {"y": values}, 0, 0)


def forest(directory, _):
    """A random forest of 100 trees over the iris data, one row."""
    import joblib
    from sklearn.datasets import load_iris
    from sklearn.ensemble import RandomForestClassifier

    features, classes = load_iris(return_X_y=True)
    model = RandomForestClassifier(100, random_state=SEED).fit(features.astype(np.float32), classes)
    joblib.dump(model, directory / "model.joblib")
    row = features[100:101].astype(np.float32)
    write(directory, "sklearn", "model.joblib", {"input": row}, {"predict": model.predict(row).astype(np.int64)}, 64, 0)


def boosted(directory, _):
    """XGBoost: 100 trees of depth 6 over 20 features, one row, a probability."""
    import xgboost

    random = np.random.default_rng(SEED)
    features = random.random((2000, 20), dtype=np.float32)
    label = (features[:, 0] * features[:, 1] + features[:, 2] > 0.8).astype(np.int32)
    model = xgboost.train({"max_depth": 6, "objective": "binary:logistic", "nthread": 1, "seed": SEED}, xgboost.DMatrix(features, label), 100)
    model.save_model(directory / "model.json")
    row = features[:1]
    write(directory, "xgboost", "model.json", {"input": row}, {"predict": model.inplace_predict(row).astype(np.float32)}, 64, 1e-5)


def encoder(directory, minilm):
    """all-MiniLM-L6-v2 with 8-bit weights, one sentence of 16 tokens."""
    shutil.copyfile(minilm, directory / "model.onnx")
    tokens = np.random.default_rng(SEED).integers(1000, 21000, (1, 16))
    inputs = {"input_ids": tokens, "attention_mask": np.ones_like(tokens), "token_type_ids": np.zeros_like(tokens)}
    dims = {name: [-1] for name in inputs} | {"last_hidden_state": [-1, 384]}
    # Weights and activations are 8-bit: the scale of a batch depends on its rows, so the answer in a batch differs a little.
    write(directory, "onnx", "model.onnx", inputs, by_onnxruntime(directory, inputs), 32, 0.15, dims)


def image(directory, _):
    """ResNet-18 without its classes' names: one image of 3 x 224 x 224 to 1,000 scores. Batch normalization is folded into the weights."""
    from onnx import TensorProto, helper, numpy_helper, save

    random = np.random.default_rng(SEED)
    nodes, weights = [], []

    def constant(name, values):
        weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def node(kind, inputs, output, **attributes):
        nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def convolution(x, name, before, after, size, stride, scale=1.0):
        kernel = random.standard_normal((after, before, size, size)) * scale * np.sqrt(2 / (before * size * size))
        parameters = [x, constant(name + ".w", kernel), constant(name + ".b", np.zeros(after))]
        return node("Conv", parameters, name, kernel_shape=[size] * 2, strides=[stride] * 2, pads=[size // 2] * 4)

    x = node("Relu", [convolution("image", "stem", 3, 64, 7, 2)], "stem.relu")
    x = node("MaxPool", [x], "stem.pool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    before = 64
    for stage, after in enumerate((64, 128, 256, 512)):
        for block in range(2):
            name, stride = f"stage{stage}.{block}", 2 if stage > 0 and block == 0 else 1
            y = node("Relu", [convolution(x, name + ".1", before, after, 3, stride)], name + ".relu1")
            y = convolution(y, name + ".2", after, after, 3, 1, 0.3)
            if stride > 1:
                x = convolution(x, name + ".shortcut", before, after, 1, stride)
            x = node("Relu", [node("Add", [x, y], name + ".sum")], name + ".relu2")
            before = after
    x = node("Flatten", [node("GlobalAveragePool", [x], "mean")], "features")
    node("Gemm", [x, constant("classes.w", random.standard_normal((512, 1000)) * 0.05), constant("classes.b", np.zeros(1000))], "scores")
    of, to = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", *s]) for n, s in (("image", [3, 224, 224]), ("scores", [1000])))
    graph = helper.make_graph(nodes, "resnet18", [of], [to], weights)
    save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 14)]), directory / "model.onnx")
    inputs = {"image": random.random((1, 3, 224, 224), dtype=np.float32)}
    write(directory, "onnx", "model.onnx", inputs, by_onnxruntime(directory, inputs), 8, 1e-3)


def torchscript(directory, _):
    """The same architecture as TorchScript, traced: one image to 1,000 scores."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, before, after, stride):
            super().__init__()
            self.first = nn.Sequential(nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU())
            self.second = nn.Sequential(nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after))
            self.shortcut = nn.Identity()
            if stride > 1:
                self.shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

        def forward(self, x):
            return torch.relu(self.second(self.first(x)) + self.shortcut(x))

    class ResNet18(nn.Module):
        def __init__(self):
            super().__init__()
            stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
            stages = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
            blocks = [Block(*stage) for stage in stages]
            self.layers = nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))

        def forward(self, image):
            return self.layers(image)

    torch.manual_seed(SEED)
    model = ResNet18()
    # The normalization has the statistics of random images, so that the scores of images differ.
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.momentum = 1.0
    with torch.no_grad():
        model(torch.rand(8, 3, 224, 224))
    model.eval()
    image = torch.rand(1, 3, 224, 224)
    with torch.inference_mode():
        scores = model(image)
    torch.jit.trace(model, image).save(str(directory / "model.pt"))
    write(directory, "torchscript", "model.pt", {"image": image.numpy()}, {"OUTPUT__0": scores.numpy()}, 8, 1e-3)


def mobilenet(place):
    """
    MobileNetV2 with random weights as a SavedModel: one image to 1,000 scores. The normalization has the statistics of random images;
    without them the scores of all images are alike, and every answer would be right.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    tf.keras.utils.set_random_seed(SEED)
    network = tf.keras.applications.MobileNetV2(weights=None, classifier_activation=None)
    for layer in network.layers:
        if isinstance(layer, tf.keras.layers.BatchNormalization):
            layer.momentum = 0.0
    network(np.random.default_rng(SEED + 1).random((8, 224, 224, 3), dtype=np.float32), training=True)
    image = tf.keras.Input((224, 224, 3), name="image")
    tf.keras.Model(image, network(image)).export(place, verbose=False)
    return tf


def picture():
    return np.random.default_rng(SEED).random((1, 224, 224, 3), dtype=np.float32)


def tflite(directory, _):
    """MobileNetV2 for TensorFlow Lite."""
    from ai_edge_litert.interpreter import Interpreter

    with tempfile.TemporaryDirectory() as place:
        file = directory / "model.tflite"
        file.write_bytes(mobilenet(place).lite.TFLiteConverter.from_saved_model(place).convert())
    found = Interpreter(str(file), num_threads=1).get_signature_runner()(image=picture())
    write(directory, "tflite", file.name, {"image": picture()}, found, 4, 1e-3)


def savedmodel(directory, _):
    """The same network as a SavedModel of TensorFlow."""
    place = directory / "model.savedmodel"
    tf = mobilenet(place)
    found = tf.saved_model.load(str(place)).signatures["serving_default"](image=tf.constant(picture()))
    write(directory, "savedmodel", place.name, {"image": picture()}, {name: t.numpy() for name, t in found.items()}, 4, 1e-3)


def ensemble(directory, minilm):
    """A sentence to its embedding by three steps in one request: tokenizer, MiniLM with 8-bit weights, and pooling."""
    sys.path.insert(0, str(HERE.parent / "servers"))
    from models import Sentences

    shutil.copyfile(minilm, directory / "model.onnx")
    shutil.copyfile(minilm.parents[2] / "tokenizer/1/tokenizer.json", directory / "tokenizer.json")
    sentences = Sentences(directory)
    sentences.load_tokenizer()
    sentences.load_encoder()
    texts = np.array([["The ship had left the harbour in the morning before the storm came."]], object)
    # The tolerance is that of 8-bit activations, whose scale depends on the other rows of a batch.
    write(directory, "ensemble", "", {"TEXT": texts}, {"embedding": sentences.embed(texts)}, 32, 0.02)


def stream(directory, _):
    """A model in Python that answers a prompt with 64 texts, one after the other, as fast as it can: servers/triton/stream.py."""
    prompt = np.array(["Write of the sea."], object)
    write(directory, "stream", "", {"text_input": prompt}, {"text_output": np.array([""], object)}, 0, 0, more={"tokens": TOKENS})


WORKLOADS = {
    "tiny": tiny,
    "python": python,
    "large": large,
    "forest": forest,
    "boosted": boosted,
    "encoder": encoder,
    "image": image,
    "torchscript": torchscript,
    "tflite": tflite,
    "savedmodel": savedmodel,
    "ensemble": ensemble,
    "stream": stream,
}


def main():
    target, minilm = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    for name in sys.argv[3:] or WORKLOADS:
        directory = target / name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        try:
            WORKLOADS[name](directory, minilm)
        except BaseException:
            shutil.rmtree(directory)
            raise


if __name__ == "__main__":
    main()
