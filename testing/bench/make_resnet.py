# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the model of the row torchscript: python3 make_resnet.py [FILE]. Needs nothing but Python.

ResNet-18 for pictures of 224 x 224 as a TorchScript archive, in 32-bit floats, with batch normalisation folded into the convolutions.
The weights are random: the time of a run does not depend on them, and nothing is downloaded.
"""

import array
import io
import pathlib
import pickle
import random
import sys
import types
import zipfile
from collections import OrderedDict

file = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "target" / "resnet18.pt")


def module(name: str, **names) -> None:
    made = types.ModuleType(name)
    made.__dict__.update(names)
    sys.modules[name] = made


class Storage:
    """A tensor's memory: its key in the archive and its values."""

    def __init__(self, key: str, values: array.array) -> None:
        self.key = key
        self.values = values


class Parameter:
    """A tensor over the whole of its memory."""

    def __init__(self, storage: Storage, shape: tuple) -> None:
        self.storage = storage
        self.shape = shape

    def __reduce__(self):
        strides = []
        step = 1
        for size in reversed(self.shape):
            strides.insert(0, step)
            step *= size
        return rebuild, (self.storage, 0, self.shape, tuple(strides), False, OrderedDict())


def named(function, where: str, name: str):
    function.__module__ = where
    function.__qualname__ = function.__name__ = name
    return function


rebuild = named(lambda *of: None, "torch._utils", "_rebuild_tensor_v2")
FloatStorage = named(type("FloatStorage", (), {}), "torch", "FloatStorage")
ResNet = named(type("ResNet", (), {}), "__torch__", "ResNet")
module("torch", FloatStorage=FloatStorage)
module("torch._utils", _rebuild_tensor_v2=rebuild)
module("__torch__", ResNet=ResNet)


class Pickler(pickle.Pickler):
    def persistent_id(self, obj):
        return ("storage", FloatStorage, obj.key, "cpu", len(obj.values)) if isinstance(obj, Storage) else None


numbers = random.Random(7)
normal = array.array("f", (numbers.gauss(0, 1) for _ in range(1 << 16)))
parameters: "OrderedDict[str, Parameter]" = OrderedDict()
code = []


def parameter(name: str, shape: tuple, deviation: float) -> str:
    count = 1
    for size in shape:
        count *= size
    block = array.array("f", (deviation * value for value in normal))
    values = block * (count // len(block)) + block[: count % len(block)]
    parameters[name] = Parameter(Storage(str(len(parameters)), values), shape)
    return f"self.{name}"


def convolution(to: str, of: str, name: str, inputs: int, outputs: int, kernel: int, stride: int, gain: float = 2) -> None:
    weight = parameter(name, (outputs, inputs, kernel, kernel), (gain / (inputs * kernel * kernel)) ** 0.5)
    bias = parameter(name + "_bias", (outputs,), 0.01)
    pad = kernel // 2
    code.append(
        f"{to} = torch.conv2d({of}, {weight}, {bias}, [{stride}, {stride}], [{pad}, {pad}], [1, 1], 1)")


convolution("x", "image", "stem", 3, 64, 7, 2)
code.append("x = torch.max_pool2d(torch.relu(x), [3, 3], [2, 2], [1, 1], [1, 1], False)")
width = 64
for stage, outputs in enumerate((64, 128, 256, 512)):
    for block in range(2):
        name = f"block{stage}{block}"
        stride = 2 if stage > 0 and block == 0 else 1
        convolution("y", "x", name + "_first", width, outputs, 3, stride)
        convolution("y", "torch.relu(y)", name + "_second", outputs, outputs, 3, 1, 0.5)
        if stride == 2:
            convolution("x", "x", name + "_shortcut", width, outputs, 1, 2, 1)
        code.append("x = torch.relu(torch.add(y, x))")
        width = outputs
code.append("x = torch.flatten(torch.adaptive_avg_pool2d(x, [1, 1]), 1)")
code.append(f"return torch.linear(x, {parameter('head', (1000, 512), 0.05)}, {parameter('head_bias', (1000,), 0.01)})")

source = "class ResNet(Module):\n"
source += "  __parameters__ = [" + "".join(f'"{name}", ' for name in parameters) + "]\n  __buffers__ = []\n"
source += "".join(f"  {name} : Tensor\n" for name in parameters) + "  training : bool\n"
source += "  def forward(self: __torch__.ResNet,\n    image: Tensor) -> Tensor:\n"
source += "".join(f"    {line}\n" for line in code)

network = ResNet()
network.__dict__.update(parameters)
network.training = False
pickled = io.BytesIO()
Pickler(pickled, protocol=2).dump(network)

file.parent.mkdir(parents=True, exist_ok=True)
with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
    archive.writestr("resnet/data.pkl", pickled.getvalue())
    archive.writestr("resnet/code/__torch__.py", source)
    archive.writestr("resnet/constants.pkl", pickle.dumps((), protocol=2))
    archive.writestr("resnet/version", "3\n")
    for each in parameters.values():
        archive.writestr(f"resnet/data/{each.storage.key}", each.storage.values.tobytes())
print(file)
