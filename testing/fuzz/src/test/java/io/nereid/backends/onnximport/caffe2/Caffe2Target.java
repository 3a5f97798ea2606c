// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.caffe2;

import io.nereid.fuzz.FuzzTarget;
import io.nereid.fuzz.InputParts;
import io.nereid.spi.config.ModelConfig;
import java.util.List;

/** A Caffe2 net with its weights, and the conversion to ONNX. Confined to one thread. */
public final class Caffe2Target implements FuzzTarget {
    @Override
    public void read(byte[] input) {
        InputParts parts = InputParts.of(input);
        NetDef net = NetDef.parse(parts.first());
        NetDef init = NetDef.parse(parts.second());
        if (net.operators().isEmpty() || Caffe2Converter.missing(init) != null) {
            return;
        }
        new Caffe2Converter(init, net, ModelConfig.unspecified("m")).convert();
    }

    @Override
    public List<byte[]> seeds() {
        return InputParts.seeds("backends/onnx-import/src/test/resources/nets", "model.netdef", "init_model.netdef");
    }
}
