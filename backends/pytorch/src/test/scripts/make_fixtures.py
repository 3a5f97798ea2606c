# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the models that the tests read: python3 make_fixtures.py [directory]. Needs torch (any version from 1.13 on)."""

import pathlib
import sys
import zipfile
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent / "resources" / "models")


def save(name: str, model: nn.Module, file: str = "model.pt", traced: tuple = None) -> None:
    directory = root / name / "1"
    directory.mkdir(parents=True, exist_ok=True)
    model.eval()
    script = torch.jit.trace(model, traced) if traced is not None else torch.jit.script(model)
    script.save(str(directory / file))


def linear(inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    with torch.no_grad():
        layer.weight.copy_(torch.arange(inputs * outputs, dtype=torch.float32).reshape(outputs, inputs) / 4)
        layer.bias.copy_(torch.arange(outputs, dtype=torch.float32))
    return layer


class HalfPlusTwo(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x / 2 + 2


class AddSub(nn.Module):
    def forward(self, INPUT0: Tensor, INPUT1: Tensor) -> Tuple[Tensor, Tensor]:
        return INPUT0 + INPUT1, INPUT0 - INPUT1


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = linear(4, 3)
        self.out = linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(torch.relu(self.hidden(x)))


class Scores(nn.Module):
    def forward(self, logits: Tensor) -> Dict[str, Tensor]:
        label = torch.argmax(logits, dim=-1)
        return {"probabilities": torch.softmax(logits, dim=-1), "label": label}


class Pair(NamedTuple):
    least: Tensor
    greatest: Tensor


class Extremes(nn.Module):
    def forward(self, values: Tensor) -> Pair:
        return Pair(values.amin(dim=-1), values.amax(dim=-1))


class Many(nn.Module):
    def forward(self, x: Tensor) -> List[Tensor]:
        return [x + 1, x + 2, x + 3]


class Options(nn.Module):
    def forward(self, x: Tensor, mask: Optional[Tensor] = None, scale: float = 1.0, times: int = 1, add: bool = False) -> Tensor:
        if mask is not None:
            x = x * mask
        x = x * scale * times
        if add:
            x = x + 100
        return x


class TakesDict(nn.Module):
    def forward(self, named: Dict[str, Tensor]) -> Tensor:
        return named["a"] * 10 + named["b"]


class TakesList(nn.Module):
    def forward(self, parts: List[Tensor]) -> Tensor:
        return torch.cat(parts, dim=-1)


class Texts(nn.Module):
    def forward(self, texts: List[str]) -> List[str]:
        out: List[str] = []
        for text in texts:
            out.append(text + "!")
        return out


class Numbers(nn.Module):
    def forward(self, x: Tensor) -> Tuple[int, float, bool, str, List[int]]:
        return x.numel(), float(x.sum()), bool(x.numel() > 2), "text", x.shape


class Identity(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


class Transposed(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.transpose(0, 1)


class InPlace(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.add_(1.0)


class Grown(nn.Module):
    """An answer of any length, for large results."""

    def forward(self, size: Tensor) -> Tensor:
        return torch.arange(int(size.item()), dtype=torch.int64)


class Embedded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 4)
        with torch.no_grad():
            self.table.weight.copy_(torch.arange(40, dtype=torch.float32).reshape(10, 4))

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.table(input_ids)


class Half(nn.Module):
    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        return x.to(torch.float16), x.to(torch.bfloat16)


class Weights(nn.Module):
    """4 MB, to see that they are given back."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        big = torch.zeros(1024, 1024)
        return self.layer(x) + big[0, 0]


torch.manual_seed(7)
save("half_plus_two", HalfPlusTwo())
save("add_sub", AddSub())
save("net", Net(), traced=(torch.zeros(1, 4),))
save("scores", Scores())
save("extremes", Extremes())
save("many", Many())
save("options", Options())
save("takes_dict", TakesDict())
save("takes_list", TakesList())
save("texts", Texts())
save("numbers", Numbers())
save("identity", Identity())
save("transposed", Transposed())
save("in_place", InPlace())
save("grown", Grown())
save("embedded", Embedded())
save("half", Half())
save("weights", Weights())

# What is not TorchScript.
refused = root.parent / "refused"
refused.mkdir(parents=True, exist_ok=True)
torch.save(Identity(), refused / "eager.pt")
torch.save(linear(2, 2).state_dict(), refused / "state_dict.pt")
torch.save(linear(2, 2).state_dict(), refused / "legacy.pt", _use_new_zipfile_serialization=False)
with zipfile.ZipFile(refused / "archive.mar", "w") as mar:
    mar.writestr("MAR-INF/MANIFEST.json", '{"runtime": "python", "model": {"modelName": "m"}}')
    mar.writestr("model.pt", "x")
with zipfile.ZipFile(refused / "exported.pt2", "w") as exported:
    exported.writestr("model/archive_format", "pt2")
    exported.writestr("model/models/model.json", "{}")
