// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.mxnet;

import io.nereid.backends.onnximport.caffe2.Caffe2Converter;
import io.nereid.backends.onnximport.caffe2.NetDef;
import io.nereid.backends.onnximport.onnx.ConstantTensor;
import io.nereid.base.ServingException;
import io.nereid.fuzz.FuzzTarget;
import io.nereid.fuzz.InputParts;
import io.nereid.fuzz.TargetRun;
import io.nereid.spi.config.ModelConfig;
import java.util.List;
import java.util.Map;

/** A graph of MXNet with its parameters, and the conversion. Confined to one thread. */
public final class MxnetTarget implements FuzzTarget {
    @Override
    public void read(byte[] input) {
        InputParts parts = InputParts.of(input);
        Map<String, ConstantTensor> arrays;
        try {
            arrays = MxnetParameters.parse(parts.second());
        } catch (ServingException e) {
            TargetRun.refused(e);
            arrays = Map.of();
        }
        MxnetSymbol symbol = MxnetSymbol.parse(parts.first());
        if (symbol.nodes().isEmpty() || symbol.heads().isEmpty()) {
            return;
        }
        MxnetConverter graph = new MxnetConverter(symbol, arrays);
        try {
            NetDef net = graph.net();
            new Caffe2Converter(graph.init(), net, ModelConfig.unspecified("m")).convert();
        } catch (IndexOutOfBoundsException e) {
            // The backend's own message for a node with too few inputs.
        }
    }

    @Override
    public List<byte[]> seeds() {
        return InputParts.seeds(
                "backends/onnx-import/src/test/resources/nets", "model-symbol.json", "model-0000.params");
    }
}
