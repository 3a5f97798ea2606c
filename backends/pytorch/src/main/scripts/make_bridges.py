# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the TorchScript modules that do what DJL's binding cannot: python3 make_bridges.py. Needs torch 1.13.

The binding terminates the process when it meets a type that it does not know, such as bfloat16, and it has no None.
"""

import pathlib
from typing import List, Optional, Tuple

import torch
from torch import Tensor, nn

root = pathlib.Path(__file__).parent.parent / "resources" / "io" / "nereid" / "backends" / "pytorch"


class Results(nn.Module):
    """The type numbers, and contiguous tensors, in a wider type where the binding does not know the type."""

    def forward(self, tensors: List[Tensor]) -> Tuple[List[int], List[Tensor]]:
        types: List[int] = []
        plain: List[Tensor] = []
        for tensor in tensors:
            if tensor.is_quantized:
                tensor = torch.dequantize(tensor)
            if tensor.is_sparse:
                tensor = tensor.to_dense()
            kind: int = tensor.dtype
            if kind == 2 or kind == 27:
                tensor = tensor.to(torch.int32)
            elif kind == 28 or kind == 29:
                tensor = tensor.to(torch.int64)
            elif kind < 0 or kind > 11:
                tensor = tensor.to(torch.float32)
            types.append(kind)
            plain.append(tensor.contiguous())
        return types, plain


class Typed(nn.Module):
    def forward(self, elements: Tensor, kind: int) -> Tensor:
        return elements.to(kind)


class Nothing(nn.Module):
    def forward(self) -> Optional[Tensor]:
        return None


root.mkdir(parents=True, exist_ok=True)
for name, module in (("results", Results()), ("typed", Typed()), ("nothing", Nothing())):
    torch.jit.script(module.eval()).save(str(root / (name + ".pt")))
