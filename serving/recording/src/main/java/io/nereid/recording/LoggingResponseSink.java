// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.recording;

import io.nereid.base.ServingException;
import io.nereid.recording.RequestLogger.Target;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ResponseSink;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Collects the inputs and outputs of one request for the log, while it forwards the response to the actual sink. Not
 * thread-safe: like every sink, it is called by one thread at a time.
 */
final class LoggingResponseSink implements ResponseSink {
    private final InferenceRequest request;
    private final ResponseSink sink;
    private final Target target;
    private final RequestLogWriter writer;
    private final List<Tensor> inputs;
    private @Nullable List<Tensor> outputs;
    private long version;
    /** Whether the response is not logged: several responses, or classification results. */
    private boolean withoutOutputs;

    LoggingResponseSink(InferenceRequest request, ResponseSink sink, Target target, RequestLogWriter writer) {
        this.request = request;
        this.sink = sink;
        this.target = target;
        this.writer = writer;
        this.inputs = retained(request.inputs());
        for (InferenceRequest.RequestedOutput output : request.outputs()) {
            withoutOutputs |= output.classes() > 0;
        }
    }

    private static List<Tensor> retained(List<Tensor> tensors) {
        List<Tensor> all = new ArrayList<>(tensors.size());
        for (Tensor tensor : tensors) {
            all.add(tensor.retain());
        }
        return all;
    }

    @Override
    public void next(InferenceResponse response, boolean last) {
        version = response.servable().version();
        if (!response.outputs().isEmpty() && !withoutOutputs) {
            List<Tensor> before = outputs;
            if (before == null) {
                outputs = retained(response.outputs());
            } else {
                outputs = null;
                withoutOutputs = true;
                Tensor.closeAll(before);
            }
        }
        try {
            sink.next(response, last);
        } finally {
            if (last) {
                List<Tensor> answer = outputs;
                writer.add(new RequestLogWriter.Entry(
                        target, request, inputs, answer == null ? List.of() : answer, version));
            }
        }
    }

    @Override
    public void fail(ServingException e) {
        Tensor.closeAll(inputs);
        List<Tensor> answer = outputs;
        if (answer != null) {
            Tensor.closeAll(answer);
        }
        sink.fail(e);
    }
}
