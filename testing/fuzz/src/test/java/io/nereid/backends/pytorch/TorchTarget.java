// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import io.nereid.fuzz.FuzzTarget;
import io.nereid.fuzz.FuzzTargets;
import io.nereid.fuzz.InputFile;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.zip.ZipException;

/** A TorchScript archive, or the source of the module in it. Confined to one thread. */
public final class TorchTarget implements FuzzTarget {
    private final boolean source;
    private final InputFile file = new InputFile("model.pt");

    public TorchTarget(boolean source) {
        this.source = source;
    }

    @Override
    public void read(byte[] input) throws IOException {
        if (source) {
            TorchScriptSignature.read("__torch__.M", Map.of("__torch__.py", new String(input, StandardCharsets.UTF_8)));
            return;
        }
        file.with(input);
        if (TorchArchive.recognises(file.with(input))) {
            try {
                TorchArchive.read("m", file.with(input));
            } catch (ZipException e) {
                throw new AssertionError("the error of a damaged zip leaves the reader", e);
            }
        }
    }

    @Override
    public List<byte[]> seeds() {
        return source ? FuzzTargets.texts("""
                        class M(Module):
                          __parameters__ = ["w", ]
                          __buffers__ = []
                          w : Tensor
                          training : bool
                          def forward(self: __torch__.M,
                            x: Tensor,
                            y: Optional[List[Tensor]]=None,
                            n: int=3) -> Tuple[Tensor, Dict[str, Tensor]]:
                            z = torch.add_(x, 1)
                            return (z, {"a": x, "b": z})
                        """, """
                        class M(Module):
                          def forward(self: __torch__.M, input: Dict[str, Tensor]) -> NamedTuple(a : Tensor, b : Tensor):
                            return (input["x"], input["y"])
                        """) : List.of();
    }

    /** A zip may be compressed, and each entry is read through buffers. */
    @Override
    public long allocationLimit(int length) {
        return (16L << 20) + 4_096L * length;
    }
}
