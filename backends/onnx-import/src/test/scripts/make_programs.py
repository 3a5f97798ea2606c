# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the PaddlePaddle models of the tests, with what PaddlePaddle itself answers.

    python3.11 -m venv v && v/bin/pip install paddlepaddle==3.3.1 setuptools
    v/bin/python make_programs.py ../resources/nets

A directory for each model: the two files as they are served, and case.txt, as make_nets.py writes it.
"""
import os
import pathlib
import shutil
import sys

os.environ["FLAGS_enable_pir_api"] = "0"  # programs, not the documents of PaddlePaddle 3

import numpy as np
import paddle
import paddle.nn.functional as F

OUT = pathlib.Path(sys.argv[1])
TYPES = {"float32": "FP32", "int64": "INT64", "int32": "INT32", "bool": "BOOL"}
paddle.enable_static()


def save(name, build, inputs, fluid=False, auto=False):
    """inputs: name -> (shape with -1 for the batch, array)"""
    directory = OUT / name
    directory.mkdir(parents=True, exist_ok=True)
    paddle.seed(7)
    main, start = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, start), paddle.utils.unique_name.guard():
        data = [paddle.static.data(n, s, str(a.dtype)) for n, (s, a) in inputs.items()]
        results = build(*data)
        results = list(results) if isinstance(results, (list, tuple)) else [results]
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(start)
    random = np.random.RandomState(len(name))
    for p in main.all_parameters():
        # Normalisations begin as identities, which would hide mistakes.
        if p.name.startswith(("batch_norm", "layer_norm", "instance_norm")):
            v = paddle.static.global_scope().find_var(p.name).get_tensor()
            v.set((random.rand(*np.array(v).shape) + 0.5).astype("float32"), paddle.CPUPlace())
    scratch = pathlib.Path("scratch")
    shutil.rmtree(scratch, ignore_errors=True)
    paddle.static.save_inference_model(str(scratch / "model"), data, results, exe, program=main)
    program, feeds, fetches = paddle.static.load_inference_model(str(scratch / "model"), exe)
    answers = exe.run(program, feed={n: a for n, (_, a) in inputs.items()}, fetch_list=fetches)
    if fluid:
        # As versions before 2.0 wrote it: a file for each weight.
        shutil.copy(scratch / "model.pdmodel", directory / "__model__")
        shutil.copy(scratch / "model.pdiparams", directory / "__params__")
    else:
        for ending in ("pdmodel", "pdiparams"):
            if (scratch / f"model.{ending}").exists():
                shutil.copy(scratch / f"model.{ending}", directory)
    for made in (directory / "model.pdmodel", directory / "__model__"):
        if made.exists():
            made.write_bytes(without_traces(made.read_bytes()))
    lines = ["auto" if auto else "configured"]
    for side, values in (("input", [(n, a) for n, (_, a) in inputs.items()]), ("output", zip([f.name for f in fetches], answers))):
        for n, a in values:
            dims = ",".join(map(str, a.shape)) or "-"
            lines.append(" ".join([side, n, TYPES[str(a.dtype)], dims] + [repr(float(v)) for v in a.flatten()]))
    (directory / "case.txt").write_text("\n".join(lines) + "\n")
    print(name, sorted({o.type for o in program.global_block().ops}))
    return {o.type for o in program.global_block().ops}


def without_traces(message, path=(1, 4, 4)):
    """A program without the attributes op_callstack, which hold paths of the machine that wrote it: blocks, ops, attrs."""

    def varint(at):
        value = shift = 0
        while True:
            value |= (message[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if message[at - 1] < 128:
                return value, at

    def sized(value):
        out = bytearray()
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        return bytes(out) + bytes([value])

    out, at = bytearray(), 0
    while at < len(message):
        begin = at
        tag, at = varint(at)
        kind = tag & 7
        if kind == 2:
            size, at = varint(at)
            inner, at = message[at : at + size], at + size
            if tag >> 3 == path[0]:
                if len(path) == 1:
                    if b"op_callstack" in inner[:16]:
                        continue
                else:
                    inner = without_traces(inner, path[1:])
                out += sized(tag) + sized(len(inner)) + inner
                continue
        elif kind == 0:
            _, at = varint(at)
        else:
            at += 8 if kind == 1 else 4
        out += message[begin:at]
    return bytes(out)


rng = np.random.RandomState(5)


def floats(*shape):
    return rng.randn(*shape).astype("float32")


def operator(kind, inputs, dtype="float32", **attributes):
    """For functions of PaddlePaddle 3 that no longer write programs."""
    helper = paddle.base.layer_helper.LayerHelper(kind)
    out = helper.create_variable_for_type_inference(dtype)
    if dtype == "int64":
        attributes["dtype"] = 3
    helper.append_op(type=kind, inputs=inputs, outputs={"Out": [out]}, attrs=attributes)
    return out


def matmul(x, y, trans_y=False):
    return operator("matmul_v2", {"X": [x], "Y": [y]}, trans_x=False, trans_y=trans_y)


def one(kind, x, dtype="float32", **attributes):
    return operator(kind, {"X": [x]}, dtype, **attributes)


def two(kind, x, y, dtype="float32"):
    return operator(kind, {"X": [x], "Y": [y]}, dtype)


def mlp(x):
    x = paddle.nn.Linear(6, 8)(x)
    x = F.dropout(F.relu(x), 0.3)
    return F.softmax(paddle.nn.Linear(8, 3)(x))


def convnet(x):
    x = paddle.nn.Conv2D(3, 6, 3, padding=1, stride=2)(x)
    x = F.relu(paddle.nn.BatchNorm2D(6)(x))
    x = F.max_pool2d(x, 2)
    x = F.relu6(paddle.nn.Conv2D(6, 6, 3, padding="SAME", groups=6)(x))
    x = F.hardswish(paddle.nn.Conv2D(6, 8, 1)(x))
    x = F.adaptive_avg_pool2d(x, 1)
    return F.softmax(paddle.nn.Linear(8, 4)(paddle.flatten(x, 1)))


def pictures(x):
    return [
        F.avg_pool2d(x, 3, stride=2, padding=1),
        F.avg_pool2d(x, 3, stride=2, padding=1, exclusive=False),
        F.max_pool2d(x, 3, stride=2, padding=0, ceil_mode=True),
        paddle.nn.Conv2DTranspose(4, 3, 3, stride=2, padding=1, output_padding=1)(x),
        F.interpolate(x, scale_factor=2, mode="nearest"),
        F.interpolate(x, size=[13, 11], mode="bilinear", align_corners=True),
        F.interpolate(x, size=[14, 14], mode="bilinear", align_corners=False, align_mode=0),
        F.interpolate(x, size=[14, 14], mode="bilinear", align_corners=False, align_mode=1),
        F.pad(x, [1, 2, 0, 1]),
        F.pad(x, [1, 2, 0, 1], mode="reflect"),
        F.prelu(x, paddle.static.create_parameter([4], "float32", default_initializer=paddle.nn.initializer.Constant(0.3))),
        F.pixel_shuffle(x, 2),
        paddle.nn.InstanceNorm2D(4)(x),
        paddle.nn.Conv2D(4, 2, 3, dilation=2, padding=[1, 2], bias_attr=False)(x),
    ]


def attention(ids):
    x = paddle.nn.Embedding(20, 8, padding_idx=0)(ids)
    x = paddle.nn.LayerNorm(8)(x + paddle.nn.Embedding(20, 8)(ids))
    q, k, v = (paddle.nn.Linear(8, 8)(x) for _ in range(3))
    q, k, v = (paddle.transpose(paddle.reshape(t, [0, 0, 2, 4]), [0, 2, 1, 3]) for t in (q, k, v))
    a = F.softmax(matmul(q, k, True) * 0.5)
    x = paddle.reshape(paddle.transpose(matmul(a, v), [0, 2, 1, 3]), [0, 0, 8])
    x = one("gelu", paddle.nn.Linear(8, 8)(x)) + one("gelu", x, approximate=True)
    return one("tanh", x[:, 0]), paddle.mean(x, axis=1)


def elements(x):
    return [
        one("sigmoid", x), one("exp", x), one("log", one("abs", x) + 1), one("sqrt", paddle.square(x)), one("floor", x), one("ceil", x),
        one("sin", x), one("cos", x), paddle.erf(x), one("sign", x), one("rsqrt", one("abs", x) + 0.5), F.leaky_relu(x, 0.1),
        F.elu(x, 0.7), F.selu(x), F.hardsigmoid(x), F.swish(x), F.silu(x), one("softplus", x), F.mish(x), F.softsign(x),
        paddle.pow(x, 2.0), paddle.clip(x, -0.5, 0.7), paddle.scale(x, 2.0, 1.0), paddle.scale(x, 2.0, 1.0, bias_after_scale=False),
        F.log_softmax(x), F.softmax(x, axis=1), paddle.cast(x > 0, "float32"), paddle.reciprocal(x), one("round", x)]


def shapes(x):
    parts = paddle.split(x, 3, axis=1)
    some = paddle.split(x, [1, 2, 3], axis=1)
    value, place = paddle.topk(x, 2, axis=-1)
    return [
        paddle.concat([parts[1], parts[0]], axis=1), some[2], paddle.stack([x, x * 2], axis=1), paddle.unsqueeze(x, [1, 3]),
        paddle.squeeze(paddle.unsqueeze(x, 1), 1), paddle.flatten(x, 1), paddle.reshape(x, [-1, 12]), x[:, 1:5:1, -2:], x[:, 2],
        paddle.tile(x, [1, 1, 2]), value, paddle.cast(place, "float32"),
        paddle.transpose(x, [0, 2, 1])]


def sums(x, y):
    return [
        one("reduce_sum", x, dim=[1]), paddle.mean(x, axis=[1, 2], keepdim=True), paddle.max(x, axis=-1), paddle.min(x, axis=1), paddle.prod(x, axis=2),
        paddle.mean(x), one("arg_max", x, "int64", axis=-1), one("arg_min", x, "int64", axis=1, keepdims=True), two("elementwise_max", x, y), two("elementwise_min", x, y),
        x / (one("abs", y) + 1), x - y, paddle.where(two("greater_than", x, y, "bool"), x, y), paddle.cast(two("logical_and", x > 0, y <= x, "bool"), "int32"),
        paddle.cast(paddle.equal(x, y), "int64"), paddle.add_n([x, y, x]), paddle.full([2, 2], 3.5, "float32"),
        paddle.assign(np.array([1.5, -2.0], "float32")), two("bmm", x, paddle.transpose(y, [0, 2, 1]))]


def unknown(x):
    return paddle.cumsum(x, axis=1)


def whole(ids):
    return ids * 2 + 1


used = set()
used |= save("pp_mlp", mlp, {"x": ([None, 6], floats(5, 6))}, auto=True)
used |= save("pp_fluid", mlp, {"x": ([None, 6], floats(2, 6))}, fluid=True, auto=True)
used |= save("pp_convnet", convnet, {"image": ([None, 3, 16, 16], floats(2, 3, 16, 16))}, auto=True)
used |= save("pp_pictures", pictures, {"x": ([None, 4, 7, 7], floats(2, 4, 7, 7))})
used |= save("pp_attention", attention, {"ids": ([None, 6], rng.randint(0, 20, (3, 6)).astype("int64"))}, auto=True)
used |= save("pp_elements", elements, {"x": ([None, 3, 4], floats(2, 3, 4))})
used |= save("pp_shapes", shapes, {"x": ([None, 6, 4], floats(2, 6, 4))})
used |= save("pp_sums", sums, {"x": ([None, 3, 4], floats(2, 3, 4)), "y": ([None, 3, 4], floats(2, 3, 4))})
used |= save("pp_whole", whole, {"ids": ([None, 2], np.array([[1, 2], [3, 4]], "int64"))}, auto=True)
save("pp_unknown", unknown, {"x": ([None, 4], floats(2, 4))})
shutil.rmtree("scratch", ignore_errors=True)
print(len(used), "operators")
