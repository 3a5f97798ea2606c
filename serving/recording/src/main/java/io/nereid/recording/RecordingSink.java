// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.recording;

import io.nereid.base.ServingException;
import io.nereid.recording.Recorder.Target;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ResponseSink;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Keeps what goes in and what comes out of one request, then hands both to the journal. Called as any sink: by one thread at
 * a time.
 */
final class RecordingSink implements ResponseSink {
    private final InferenceRequest request;
    private final ResponseSink sink;
    private final Target target;
    private final Journal journal;
    private final List<Tensor> inputs;
    private @Nullable List<Tensor> outputs;
    private long version;
    private boolean wordless;

    RecordingSink(InferenceRequest request, ResponseSink sink, Target target, Journal journal) {
        this.request = request;
        this.sink = sink;
        this.target = target;
        this.journal = journal;
        this.inputs = retained(request.inputs());
        for (InferenceRequest.RequestedOutput output : request.outputs()) {
            wordless |= output.classes() > 0;
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
        if (!response.outputs().isEmpty() && !wordless) {
            List<Tensor> before = outputs;
            if (before == null) {
                outputs = retained(response.outputs());
            } else {
                outputs = null;
                wordless = true;
                Tensor.closeAll(before);
            }
        }
        try {
            sink.next(response, last);
        } finally {
            if (last) {
                List<Tensor> answer = outputs;
                journal.add(new Journal.Entry(target, request, inputs, answer == null ? List.of() : answer, version));
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
