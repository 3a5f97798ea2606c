// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.servable;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.engine.CountedTensors;
import io.nereid.observe.RequestTrace;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.Options;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** Sends requests to one servable and keeps the responses. Thread-safe. */
public final class Client {
    /** One response, or the failure. */
    public record Answer(
            @Nullable InferenceResponse response,
            boolean last,
            @Nullable ServingException failure) {}

    private final EngineServable servable;
    private final Clock clock;
    private final AtomicInteger sent = new AtomicInteger();
    private final AtomicInteger closed = new AtomicInteger();
    final BlockingQueue<Answer> answers = new LinkedBlockingQueue<>();

    public Client(EngineServable servable, Clock clock) {
        this.servable = servable;
        this.clock = clock;
    }

    public InferenceCall send(List<Tensor> inputs, String... outputs) {
        return send(null, inputs, outputs);
    }

    InferenceCall send(@Nullable RequestTrace trace, List<Tensor> inputs, String... outputs) {
        sent.incrementAndGet();
        InferenceRequest request = new InferenceRequest(
                ModelRef.latest("m"),
                "id-7",
                inputs,
                List.of(outputs).stream().map(o -> new RequestedOutput(o, 0)).toList(),
                Map.of(),
                Long.MAX_VALUE,
                clock.nanos(),
                new Options(0, 0, null, trace));
        return new RequestSubmitter(clock).submit(servable, closed::incrementAndGet, request, new ResponseSink() {
            @Override
            public void next(InferenceResponse response, boolean last) {
                answers.add(new Answer(response, last, null));
            }

            @Override
            public void fail(ServingException e) {
                answers.add(new Answer(null, true, e));
            }
        });
    }

    public Answer next() throws InterruptedException {
        Answer answer = answers.poll(5, TimeUnit.SECONDS);
        if (answer == null) {
            throw new AssertionError("no answer");
        }
        return answer;
    }

    /** The next response as text: its first output's ints, and a {@code .} for the last one. Closes it. */
    public String nextText() throws InterruptedException {
        Answer answer = next();
        InferenceResponse response = answer.response();
        if (response == null) {
            return String.valueOf(answer.failure());
        }
        StringBuilder text = new StringBuilder();
        for (Tensor t : response.outputs()) {
            text.append(t.name());
            for (int v : CountedTensors.ints(t)) {
                text.append(' ').append(v);
            }
        }
        response.close();
        return text + (answer.last() ? "." : "");
    }

    public ServingException nextFailure() throws InterruptedException {
        Answer answer = next();
        ServingException failure = answer.failure();
        if (failure == null) {
            throw new AssertionError("answered, but a failure was expected");
        }
        return failure;
    }

    int underWay() {
        return sent.get() - closed.get();
    }

    public void assertNothingUnderWay() {
        assertThat(closed).as("handles closed").hasValue(sent.get());
        assertThat(answers).isEmpty();
    }
}
