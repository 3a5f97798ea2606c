# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the MXNet models of the tests, with what MXNet itself answers.

    python3.8 -m venv v && v/bin/pip install mxnet==1.9.1 'numpy<1.24' requests 'graphviz<0.9'
    v/bin/python make_symbols.py ../resources/nets

A directory for each model: the two files as they are served, and case.txt, as make_nets.py writes it.
"""
import pathlib
import sys

import mxnet as mx
import numpy as np

OUT = pathlib.Path(sys.argv[1])


def save(name, symbol, shapes, auto=False):
    random = np.random.RandomState(len(name))
    directory = OUT / name
    directory.mkdir(parents=True, exist_ok=True)
    arguments, _, auxiliary = symbol.infer_shape(**shapes)
    args, aux = {}, {}
    labels = [n for n in symbol.list_arguments() if n.endswith("_label")]
    for n, s in zip(symbol.list_arguments(), arguments):
        if n in shapes:
            values = random.randint(0, 5, s) if n == "ids" else random.randn(*s)
        else:
            values = random.randn(*s) * 0.5
        args[n] = mx.nd.array(values)
    for n, s in zip(symbol.list_auxiliary_states(), auxiliary):
        aux[n] = mx.nd.array(random.rand(*s) + 0.5 if n.endswith("var") else random.randn(*s))
    executor = symbol.bind(mx.cpu(), args, aux_states=aux, grad_req="null")
    outputs = executor.forward(is_train=False)
    (directory / "model-symbol.json").write_text(symbol.tojson())
    weights = {"arg:" + n: a for n, a in args.items() if n not in shapes and n not in labels}
    weights.update({"aux:" + n: a for n, a in aux.items()})
    mx.nd.save(str(directory / "model-0000.params"), weights)
    lines = ["auto" if auto else "configured"]
    for side, values in (("input", [(n, args[n]) for n in shapes]), ("output", zip(symbol.list_outputs(), outputs))):
        for n, a in values:
            a = a.asnumpy()
            lines.append(" ".join([side, n, "FP32", ",".join(map(str, a.shape))] + [repr(float(v)) for v in a.flatten()]))
    (directory / "case.txt").write_text("\n".join(lines) + "\n")


def mx_mlp():
    x = mx.sym.Variable("data")
    x = mx.sym.FullyConnected(x, num_hidden=6, name="fc1")
    x = mx.sym.Activation(x, act_type="tanh", name="act1")
    x = mx.sym.FullyConnected(x, num_hidden=4, no_bias=True, name="fc2")
    save("mx_mlp", mx.sym.SoftmaxOutput(x, name="softmax"), {"data": (3, 8)}, auto=True)


def mx_convnet():
    data = mx.sym.Variable("data")
    x = mx.sym.Convolution(data, kernel=(3, 3), num_filter=8, pad=(1, 1), name="conv1")
    x = mx.sym.BatchNorm(x, name="bn1")
    x = mx.sym.Activation(x, act_type="relu")
    x = mx.sym.Pooling(x, kernel=(3, 3), stride=(2, 2), pool_type="max", pooling_convention="full", name="pool1")
    y = mx.sym.Convolution(x, kernel=(3, 3), num_filter=8, pad=(2, 2), dilate=(2, 2), num_group=2, no_bias=True)
    y = mx.sym.BatchNorm(y, fix_gamma=False, eps=1e-4, name="bn2")
    x = mx.sym.elemwise_add(x, y)
    x = mx.sym.LeakyReLU(x, act_type="leaky", slope=0.1)
    x = mx.sym.Concat(x, y, dim=1)
    x = mx.sym.LRN(x, nsize=5, alpha=0.01)
    x = mx.sym.Dropout(x, p=0.5)
    x = mx.sym.Pooling(x, kernel=(2, 2), stride=(1, 1), pad=(1, 1), pool_type="avg")
    x = mx.sym.Pooling(x, kernel=(1, 1), global_pool=True, pool_type="avg")
    x = mx.sym.FullyConnected(mx.sym.Flatten(x), num_hidden=5, name="fc")
    save("mx_convnet", mx.sym.SoftmaxOutput(x, name="softmax"), {"data": (2, 3, 15, 15)}, auto=True)


def mx_parts():
    x = mx.sym.Variable("x")
    parts = mx.sym.SliceChannel(x, num_outputs=2, axis=1, name="parts")
    a, b = parts[0], parts[1]
    outputs = [
        mx.sym.softmax(a, name="soft"), (a * 2 + 1) / 3 - 0.5, mx.sym.broadcast_mul(a, mx.sym.mean(a, axis=2, keepdims=True)),
        mx.sym.clip(b, a_min=-0.5, a_max=0.5, name="clipped"), mx.sym.transpose(a, axes=(0, 2, 3, 1), name="turned"),
        mx.sym.Reshape(x, shape=(0, -1, 5), name="reshaped"), mx.sym.sum(x, axis=(2, 3), name="sums"),
        mx.sym.max(x, axis=1, name="most"), mx.sym.expand_dims(a, axis=1, name="expanded"),
        mx.sym.UpSampling(a, scale=2, sample_type="nearest", name="larger"),
        mx.sym.Deconvolution(a, kernel=(3, 3), stride=(2, 2), pad=(1, 1), adj=(1, 1), num_filter=3, name="deconv"),
        mx.sym.LeakyReLU(a, act_type="elu", slope=0.5, name="elu"), mx.sym.LeakyReLU(a, act_type="prelu", name="prelu"),
        mx.sym.Activation(b, act_type="softrelu", name="softrelu"), mx.sym.square(b, name="square"),
        mx.sym.FullyConnected(a, num_hidden=4, flatten=False, name="rows"), b]
    save("mx_parts", mx.sym.Group(outputs), {"x": (2, 4, 3, 5)})


def mx_embedding():
    x = mx.sym.Embedding(mx.sym.Variable("ids"), input_dim=5, output_dim=3, name="embed")
    save("mx_embedding", mx.sym.mean(x, axis=1, name="mean"), {"ids": (2, 4)})


def mx_unknown():
    x = mx.sym.Variable("data")
    save("mx_unknown", mx.sym.erf(mx.sym.relu(x), name="erf"), {"data": (2, 3)})


for make in (mx_mlp, mx_convnet, mx_parts, mx_embedding, mx_unknown):
    make()
    print(make.__name__)
