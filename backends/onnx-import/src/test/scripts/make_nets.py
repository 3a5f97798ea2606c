# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the nets of the tests, with what Caffe2 itself answers.

Needs Caffe2, which the wheels of PyTorch up to 1.8 have:

    python3.8 -m venv v && v/bin/pip install torch==1.8.1 'numpy<1.24' 'protobuf<3.21' future six pyyaml
    v/bin/python make_nets.py ../resources/nets

A directory for each net: the two files as they are served, and case.txt, a tensor a line: input or output, name, type,
shape, values. A first line 'auto' says that the net is served without configuration.
"""
import pathlib
import sys

import numpy as np
from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace

OUT = pathlib.Path(sys.argv[1])
TYPES = {"float32": "FP32", "int32": "INT32", "int64": "INT64", "bool": "BOOL", "uint8": "UINT8", "float64": "FP64"}


def fill(name, a):
    a = np.asarray(a)
    kind = {"float32": "GivenTensorFill", "int32": "GivenTensorIntFill", "int64": "GivenTensorInt64Fill",
            "bool": "GivenTensorBoolFill"}[str(a.dtype)]
    return core.CreateOperator(kind, [], [name], shape=list(a.shape), values=a.flatten().tolist())


class Net:
    def __init__(self, name, seed=0):
        self.name = name
        self.random = np.random.RandomState(seed + len(name))
        self.net = caffe2_pb2.NetDef(name=name)
        self.init = caffe2_pb2.NetDef(name=name + "_init")
        self.feeds = {}
        self.counter = 0

    def feed(self, name, *shape, values=None):
        a = self.random.randn(*shape).astype(np.float32) if values is None else values
        self.feeds[name] = a
        self.net.external_input.append(name)
        return name

    def weight(self, *shape, values=None, name=None, scale=0.5):
        self.counter += 1
        name = name or "w%d" % self.counter
        a = (self.random.randn(*shape) * scale).astype(np.float32) if values is None else values
        self.init.op.extend([fill(name, a)])
        self.init.external_output.append(name)
        self.net.external_input.append(name)
        return name

    def op(self, kind, inputs, outputs=None, **args):
        self.counter += 1
        outputs = outputs or ["%s_%d" % (kind.lower(), self.counter)]
        self.net.op.extend([core.CreateOperator(kind, inputs, outputs, **args)])
        return outputs[0]

    def save(self, outputs, auto=False, files=("model.netdef", "init_model.netdef"), placeholder=()):
        self.net.external_output.extend(outputs)
        workspace.ResetWorkspace()
        for name, a in self.feeds.items():
            workspace.FeedBlob(name, a)
        workspace.RunNetOnce(self.init)
        workspace.RunNetOnce(self.net)
        for name in placeholder:
            self.init.op.extend([core.CreateOperator("ConstantFill", [], [name], shape=[1])])
        directory = OUT / self.name
        directory.mkdir(parents=True, exist_ok=True)
        (directory / files[0]).write_bytes(self.net.SerializeToString())
        if self.init.op:
            (directory / files[1]).write_bytes(self.init.SerializeToString())
        lines = ["auto"] if auto else ["configured"]
        for side, values in (("input", self.feeds), ("output", {o: workspace.FetchBlob(o) for o in outputs})):
            for name, a in values.items():
                a = np.asarray(a)
                flat = a.flatten()
                texts = [repr(float(v)) if a.dtype.kind == "f" else str(int(v)) for v in flat]
                lines.append(" ".join([side, name, TYPES[str(a.dtype)], ",".join(map(str, a.shape)) or "-"] + texts))
        (directory / "case.txt").write_text("\n".join(lines) + "\n")


def mlp():
    n = Net("mlp")
    x = n.feed("data", 3, 8)
    h = n.op("FC", [x, n.weight(5, 8), n.weight(5)], ["hidden"])
    n.op("Relu", [h], [h])
    y = n.op("FC", [h, n.weight(4, 5), n.weight(4)], ["scores"])
    n.op("Softmax", [y], ["softmax"])
    n.save(["softmax"], auto=True)


def bn(n, x, channels, **args):
    return n.op("SpatialBN", [x, n.weight(channels), n.weight(channels), n.weight(channels),
                              n.weight(channels, values=(n.random.rand(channels) + 0.5).astype(np.float32))],
                is_test=1, **args)


def convnet():
    n = Net("convnet")
    x = n.feed("data", 2, 3, 16, 16)
    c = n.op("Conv", [x, n.weight(8, 3, 3, 3), n.weight(8)], ["conv1"], kernel=3, pad=1, stride=1, order="NCHW")
    c = bn(n, c, 8, epsilon=1e-3)
    n.op("Relu", [c], [c])
    c = n.op("MaxPool", [c], ["pool1"], kernel=2, stride=2)
    c = n.op("LRN", [c], ["norm1"], size=5, alpha=0.01, beta=0.75, bias=1.5)
    r = n.op("Conv", [c, n.weight(8, 4, 3, 3)], kernel=3, pad_t=1, pad_l=1, pad_b=1, pad_r=1, group=2)
    c = n.op("Sum", [r, c])
    c = n.op("Conv", [c, n.weight(12, 8, 1, 5), n.weight(12)], kernels=[1, 5], strides=[1, 2], pads=[0, 2, 0, 2])
    c = n.op("Conv", [c, n.weight(12, 12, 3, 3), n.weight(12)], kernel=3, pad=2, dilation=2)
    c = n.op("LeakyRelu", [c], alpha=0.1)
    c = n.op("Concat", [c, c], ["both", "split_info"], axis=1)
    c = n.op("Dropout", [c], ["drop", "mask"], ratio=0.5, is_test=1)
    c = n.op("AveragePool", [c], ["pool2"], global_pooling=1)
    c = n.op("FC", [c, n.weight(10, 24), n.weight(10)], ["scores"])
    n.op("Softmax", [c], ["softmax"])
    n.save(["softmax"], auto=True, files=("predict_net.pb", "init_net.pb"))


def convnet_last():
    n = Net("convnet_last")
    x = n.feed("data", 2, 9, 9, 3)
    c = n.op("Conv", [x, n.weight(8, 3, 3, 3), n.weight(8)], kernel=3, pad=1, order="NHWC")
    c = bn(n, c, 8, order="NHWC")
    c = n.op("Relu", [c])
    c = n.op("MaxPool", [c], kernel=3, stride=2, order="NHWC")
    c = n.op("Concat", [c, c], ["both", "info"], order="NHWC")
    c = n.op("LRN", [c], ["n", "n_scale"], size=3, alpha=0.1, beta=0.75, order="NHWC")
    c = n.op("AveragePool", [c], kernel=2, stride=1, order="NHWC")
    n.op("NHWC2NCHW", [c], ["y"])
    n.save(["y"], auto=True)


def pools():
    n = Net("pools")
    x = n.feed("data", 1, 2, 14, 14)
    n.op("MaxPool", [x], ["max_caffe"], kernel=3, stride=2, legacy_pad=3)
    n.op("AveragePool", [x], ["average_caffe"], kernel=3, stride=2, legacy_pad=3)
    n.op("MaxPool", [x], ["max_same"], kernel=3, stride=2, legacy_pad=2)
    n.op("MaxPool", [x], ["max_valid"], kernel=3, stride=2, legacy_pad=1)
    n.op("AveragePool", [x], ["average_pad"], kernel=3, stride=2, pad=1)
    n.op("AveragePool", [x], ["average_counted"], kernel=3, stride=2, pad=1, count_include_pad=1)
    n.op("MaxPool", [x], ["max_pad"], kernel_h=3, kernel_w=2, stride_h=2, stride_w=1, pad=1)
    n.op("MaxPool", [x], ["max_whole"], global_pooling=1)
    n.save(["max_caffe", "average_caffe", "max_same", "max_valid", "average_pad", "average_counted", "max_pad",
            "max_whole"], auto=True)


def elements():
    n = Net("elements")
    x = n.feed("x", 2, 3, 4)
    positive = n.op("Abs", [x], ["abs"])
    outputs = ["abs"]
    for kind, of, args in [
            ("Relu", x, {}), ("Sigmoid", x, {}), ("Tanh", x, {}), ("Softplus", x, {}), ("Softsign", x, {}),
            ("Exp", x, {}), ("Log", positive, {}), ("Sqrt", positive, {}), ("Floor", x, {}), ("Ceil", x, {}),
            ("Sin", x, {}), ("Cos", x, {}), ("Sign", x, {}), ("Negative", x, {}), ("Sqr", x, {}),
            ("Rsqrt", positive, {}), ("Reciprocal", x, {}), ("Copy", x, {}), ("LeakyRelu", x, {}),
            ("LeakyRelu", x, {"alpha": 0.3}), ("Elu", x, {"alpha": 0.7}), ("Selu", x, {}), ("Swish", x, {}),
            ("HardSigmoid", x, {}), ("Scale", x, {"scale": 2.5}), ("Pow", positive, {"exponent": 1.5}),
            ("Clip", x, {"min": -0.5, "max": 0.75}), ("Clip", x, {"max": 0.1}), ("Softmax", x, {}),
            ("Softmax", x, {"axis": 2}), ("Normalize", x, {}), ("Normalize", x, {"axis": 1})]:
        outputs.append(n.op(kind, [of], **args))
    outputs.append(n.op("PRelu", [x, n.weight(1)]))
    outputs.append(n.op("PRelu", [x, n.weight(3)]))
    n.save(outputs)


def arithmetic():
    n = Net("arithmetic")
    a, b = n.feed("a", 2, 3, 4, 5), n.feed("b", 2, 3, 4, 5)
    channel, row, middle = n.weight(3), n.weight(5), n.weight(3, 4)
    outputs = []
    for kind in ("Add", "Sub", "Mul", "Div"):
        outputs += [n.op(kind, [a, b]), n.op(kind, [a, channel], broadcast=1, axis=1), n.op(kind, [a, row], broadcast=1),
                    n.op(kind, [a, middle], broadcast=1, axis=1), n.op(kind, [a, n.weight(1)], broadcast=1)]
    outputs.append(n.op("Add", [a, channel], broadcast=1, axis_str="C", order="NCHW"))
    outputs.append(n.op("Sum", [a, b, a]))
    outputs.append(n.op("Max", [a, b]))
    outputs.append(n.op("Min", [a, b]))
    outputs.append(n.op("Mean", [a, b]))
    less = n.op("LT", [a, b])
    greater = n.op("GE", [a, row], broadcast=1)
    both = n.op("And", [less, greater])
    outputs += [less, greater, both, n.op("Not", [both]), n.op("Or", [less, greater]), n.op("Where", [less, a, b])]
    outputs.append(n.op("Cast", [less], to=core.DataType.INT32))
    outputs.append(n.op("Cast", [a], to=core.DataType.INT64))
    n.save(outputs)


def layout():
    n = Net("layout")
    x = n.feed("x", 2, 3, 4, 6)
    outputs = [
        n.op("Reshape", [x], ["reshaped", "old_shape"], shape=[0, -1, 6]),
        n.op("Transpose", [x], axes=[0, 2, 3, 1]), n.op("Transpose", [x]),
        n.op("Flatten", [x]), n.op("Flatten", [x], axis=2), n.op("FlattenToVec", [x]),
        n.op("Concat", [x, x], ["c1", "i1"], axis=3), n.op("Concat", [x, x], ["c2", "i2"]),
        n.op("Concat", [x, x], ["c3", "i3"], axis=1, add_axis=1),
        n.op("Slice", [x], starts=[0, 0, 0, 2], ends=[-1, -1, -1, -2]),
        n.op("Slice", [x], starts=[0, 1, 0, 0], ends=[-1, 3, -1, -1]),
        n.op("Slice", [x], starts=[0, 0, 0, -3], ends=[-1, -1, -1, -1]),
        n.op("Tile", [x], tiles=3, axis=2), n.op("NCHW2NHWC", [x]), n.op("Shape", [x])]
    one = n.op("ExpandDims", [x], dims=[0, 3])
    outputs += [one, n.op("Squeeze", [one], dims=[0, 3])]
    n.op("Split", [x], ["s1", "s2", "s3"], axis=1)
    n.op("Split", [x], ["s4", "s5"], axis=3, split=[2, 4])
    shape = n.weight(values=np.array([4, 36], np.int64))
    outputs += ["s1", "s3", "s4", "s5", n.op("Reshape", [x, shape], ["reshaped2", "old2"])]
    outputs.append(n.op("ConstantFill", [x], value=2.5))
    n.save(outputs)


def reductions():
    n = Net("reductions")
    x = n.feed("x", 2, 3, 4)
    outputs = []
    for kind in ("Sum", "Mean", "Max", "Min"):
        outputs += [n.op("Reduce" + kind, [x], axes=[1], keepdims=0), n.op("Reduce" + kind, [x], axes=[0, 2])]
    for kind in ("Sum", "Mean", "Max"):
        outputs += [n.op("ReduceFront" + kind, [x]), n.op("ReduceBack" + kind, [x], num_reduce_dim=2)]
    outputs += [n.op("ReduceL1", [x], axes=[2]), n.op("ReduceL2", [x], axes=[2]), n.op("SumElements", [x]),
                n.op("SumElements", [x], average=True), n.op("ArgMax", [x], axis=1, keepdims=0), n.op("ArgMin", [x])]
    outputs.append(n.op("TopK", [x], ["values", "places"], k=2))
    outputs.append("places")
    n.save(outputs)


def pictures():
    n = Net("pictures")
    x = n.feed("x", 1, 2, 5, 6)
    outputs = [
        n.op("ResizeNearest", [x], height_scale=2.0, width_scale=1.5),
        n.op("ResizeNearest", [x], height_scale=0.6, width_scale=0.5),
        n.op("UpsampleBilinear", [x], height_scale=2.0, width_scale=2.0),
        n.op("PadImage", [x], pad_t=1, pad_l=2, pad_b=0, pad_r=1, value=0.5),
        n.op("PadImage", [x], pad=2, mode="reflect"), n.op("PadImage", [x], pad=1, mode="edge"),
        n.op("ConvTranspose", [x, n.weight(2, 3, 3, 3), n.weight(3)], kernel=3, stride=2, pad=1, adj=1),
        n.op("ConvTranspose", [x, n.weight(2, 3, 2, 2)], kernels=[2, 2], strides=[2, 2]),
        n.op("InstanceNorm", [x, n.weight(2), n.weight(2)], epsilon=1e-3)]
    n.save(outputs)


def products():
    n = Net("products")
    x, y, z = n.feed("x", 3, 4), n.feed("y", 5, 4), n.feed("z", 2, 3, 4)
    outputs = [
        n.op("MatMul", [x, y], trans_b=1), n.op("MatMul", [y, n.weight(4, 2)]), n.op("MatMul", [x, x], trans_a=1),
        n.op("BatchMatMul", [z, z], trans_b=1), n.op("BatchMatMul", [z, n.weight(2, 4, 3)]),
        n.op("FC", [z, n.weight(6, 12), n.weight(6)]), n.op("FC", [z, n.weight(6, 4), n.weight(6)], axis=2),
        n.op("FCTransposed", [x, n.weight(4, 6), n.weight(6)]),
        n.op("FC", [x, n.weight(7, 4, 1, 1), n.weight(7)])]
    n.save(outputs)


def embedding():
    n = Net("embedding")
    x = n.feed("ids", values=np.array([[1, 4, 0], [2, 2, 3]], np.int64))
    e = n.op("Gather", [n.weight(6, 4), x])
    n.op("ReduceMean", [e], ["mean"], axes=[1], keepdims=0)
    n.save(["mean"])


def mobile():
    n = Net("mobile")
    x = n.feed("data", 2, 3, 8, 8)
    c = n.op("Conv", [x, n.weight(4, 3, 3, 3), n.weight(4)], ["c"], kernel=3, engine="NNPACK")
    n.op("Relu", [c], [c])
    n.op("MaxPool", [c], ["y"], kernel=2, stride=2)
    n.save(["y"], auto=True, placeholder=["data"])


def unknown():
    n = Net("unknown")
    x = n.feed("data", 2, 3, 4, 4)
    c = n.op("Relu", [x])
    n.op("ChannelShuffle", [c], ["y"], group=3, order="NCHW")
    n.save(["y"])


if __name__ == "__main__":
    for make in (mlp, convnet, convnet_last, pools, elements, arithmetic, layout, reductions, pictures, products,
                 embedding, mobile, unknown):
        make()
        print(make.__name__)
