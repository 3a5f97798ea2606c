// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.base.ServingException;
import io.nereid.scheduling.ReschedulableJob;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.ModelRef;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** A job that keeps its result for the test. Confined to the test's thread. */
public final class FakeJob implements InferenceJob, ReschedulableJob {
    private final InferenceRequest request;
    private final int rows;
    final List<List<Tensor>> responses = new ArrayList<>();
    public final List<Map<String, Object>> parameters = new ArrayList<>();

    public @Nullable List<Tensor> outputs;

    @Nullable ServingException failure;

    boolean cancelled;
    public int rescheduled;

    public FakeJob(int rows, List<Tensor> inputs, String... outputs) {
        this.rows = rows;
        this.request = new InferenceRequest(
                ModelRef.latest("m"),
                "",
                inputs,
                Stream.of(outputs).map(o -> new RequestedOutput(o, 0)).toList(),
                Map.of(),
                Long.MAX_VALUE,
                0);
    }

    /** The response, which the test closes. */
    public void answered(Consumer<List<Tensor>> check) {
        List<Tensor> answer = outputs;
        if (answer == null) {
            throw new AssertionError("no answer but " + failure, failure);
        }
        try {
            check.accept(answer);
        } finally {
            Tensor.closeAll(answer);
        }
    }

    public ServingException failed() {
        ServingException e = failure;
        if (e == null) {
            throw new AssertionError("answered, but a failure was expected");
        }
        return e;
    }

    @Override
    public InferenceRequest request() {
        return request;
    }

    @Override
    public int batchSize() {
        return rows;
    }

    @Override
    public boolean cancelled() {
        return cancelled;
    }

    @Override
    public void respond(List<Tensor> answer, Map<String, Object> answerParameters) {
        open();
        responses.add(answer);
        parameters.add(answerParameters);
    }

    @Override
    public void complete(List<Tensor> answer, Map<String, Object> answerParameters) {
        open();
        outputs = answer;
        parameters.add(answerParameters);
        request.release();
    }

    @Override
    public void fail(ServingException e) {
        open();
        failure = e;
        request.release();
    }

    @Override
    public void reschedule() {
        open();
        rescheduled++;
        request.release();
    }

    private void open() {
        if (outputs != null || failure != null || rescheduled > 0) {
            throw new AssertionError("ended before");
        }
    }
}
