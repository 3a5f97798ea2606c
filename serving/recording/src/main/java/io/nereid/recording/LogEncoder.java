// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.recording;

import io.nereid.spi.InferenceRequest;
import io.nereid.tensor.Tensor;
import io.nereid.tfdata.ModelSpec;
import io.nereid.tfdata.TensorProto;
import io.nereid.wire.WireWriter;
import java.util.List;

/** Makes a {@code tensorflow.serving.PredictionLog} of a recorded request. Confined to the journal's thread. */
final class LogEncoder {
    /** An array larger than this is not kept for the next record. */
    private static final int KEPT = 4 << 20;

    private final WireWriter out = new WireWriter();

    /** Encodes into {@link #array()}; the number of bytes. */
    int encode(Journal.Entry entry, long seconds) {
        InferenceRequest request = entry.request();
        String model = request.model().model();
        String signature = request.options().signature();
        ModelSpec asked = new ModelSpec(
                model, request.model().version(), request.model().label(), signature);
        ModelSpec served = ModelSpec.of(model, entry.version(), signature);
        out.reset(KEPT);
        int metadata = out.begin(1);
        served.write(out, 1);
        int sampling = out.begin(2);
        out.doubleField(1, entry.target().rate());
        out.end(sampling);
        out.varintField(4, seconds);
        out.end(metadata);
        int log = out.begin(6);
        int question = out.begin(1);
        asked.write(out, 1);
        tensors(2, entry.inputs());
        for (InferenceRequest.RequestedOutput output : request.outputs()) {
            out.presentTextField(3, output.name());
        }
        out.end(question);
        if (!entry.outputs().isEmpty()) {
            int answer = out.begin(2);
            tensors(1, entry.outputs());
            served.write(out, 2);
            out.end(answer);
        }
        out.end(log);
        return out.length();
    }

    private void tensors(int field, List<Tensor> tensors) {
        for (Tensor tensor : tensors) {
            int pair = out.begin(field);
            out.textField(1, tensor.name());
            TensorProto.write(out, 2, tensor, true);
            out.end(pair);
        }
    }

    byte[] array() {
        return out.array();
    }
}
