// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.recording;

import io.nereid.protobuf.ProtobufWriter;
import io.nereid.spi.InferenceRequest;
import io.nereid.tfdata.ModelSpec;
import io.nereid.tfdata.PredictionLog;

/** Encodes logged requests as {@code tensorflow.serving.PredictionLog}. Confined to the writer's thread. */
final class PredictionLogEncoder {
    /** A buffer larger than this is not reused for the next record. */
    private static final int KEPT = 4 << 20;

    private final ProtobufWriter out = new ProtobufWriter();

    /** Encodes into {@link #array()}; returns the number of bytes. */
    int encode(RequestLogWriter.Entry entry, long seconds) {
        InferenceRequest request = entry.request();
        String model = request.model().model();
        String signature = request.options().signature();
        ModelSpec asked =
                new ModelSpec(model, request.model().version(), request.model().label(), signature);
        out.reset(KEPT);
        PredictionLog.writePredict(
                out,
                asked,
                ModelSpec.of(model, entry.version(), signature),
                entry.inputs(),
                request.outputs().stream()
                        .map(InferenceRequest.RequestedOutput::name)
                        .toList(),
                entry.outputs().isEmpty() ? null : entry.outputs(),
                entry.target().rate(),
                seconds);
        return out.length();
    }

    byte[] array() {
        return out.array();
    }
}
