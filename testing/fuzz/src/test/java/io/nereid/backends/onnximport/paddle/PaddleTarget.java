// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.paddle;

import io.nereid.backends.onnximport.onnx.ConstantTensor;
import io.nereid.base.ServingException;
import io.nereid.fuzz.FuzzTarget;
import io.nereid.fuzz.InputParts;
import io.nereid.fuzz.TargetRun;
import java.util.List;
import java.util.Map;

/** A program of PaddlePaddle with its weights, and the conversion. Confined to one thread. */
public final class PaddleTarget implements FuzzTarget {
    @Override
    public void read(byte[] input) {
        InputParts parts = InputParts.of(input);
        PaddleProgram program = PaddleProgram.parse(parts.first());
        if (program.operators().isEmpty()) {
            return;
        }
        PaddleConverter converter = new PaddleConverter(program);
        Map<String, ConstantTensor> values;
        try {
            values = PaddleParameters.parse(parts.second(), converter.weights());
        } catch (ServingException e) {
            TargetRun.refused(e);
            values = Map.of();
        }
        converter.convert(values);
    }

    @Override
    public List<byte[]> seeds() {
        return InputParts.seeds("backends/onnx-import/src/test/resources/nets", "model.pdmodel", "model.pdiparams");
    }
}
