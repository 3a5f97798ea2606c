// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testkit;

import io.nereid.backend.ModelRequest;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.ModelRef;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A request to a model that takes requests, which remembers how it was answered. It owns its inputs until {@link #close}
 * and the answers that nobody has taken. Thread-safe.
 */
public final class RecordingRequest implements ModelRequest, AutoCloseable {
    /**
     * One answer.
     *
     * @param outputs owned by the request that recorded it
     * @param parameters the answer's
     * @param nanos when it came, on the machine's clock
     */
    public record Answer(List<Tensor> outputs, Map<String, Object> parameters, long nanos) {}

    private final InferenceRequest request;
    private final List<String> wanted;
    private final CountDownLatch ended = new CountDownLatch(1);
    private final List<Answer> answers = new ArrayList<>();
    private final List<String> ends = new ArrayList<>();
    private @Nullable ServingException failure;
    private boolean cancelled;

    /** A request of these inputs, now its own, for these outputs. */
    public RecordingRequest(List<Tensor> inputs, List<String> wanted) {
        this(inputs, wanted, InferenceRequest.Options.NONE);
    }

    /** A request with options. */
    public RecordingRequest(List<Tensor> inputs, List<String> wanted, InferenceRequest.Options options) {
        this.wanted = List.copyOf(wanted);
        this.request = new InferenceRequest(
                ModelRef.latest("model"), "", inputs, List.of(), Map.of(), Long.MAX_VALUE, 0, options);
    }

    @Override
    public InferenceRequest request() {
        return request;
    }

    @Override
    public List<String> outputs() {
        return wanted;
    }

    @Override
    public synchronized boolean cancelled() {
        return cancelled;
    }

    /** The client goes away. */
    public synchronized void cancel() {
        cancelled = true;
    }

    @Override
    public synchronized void respond(List<Tensor> outputs, Map<String, Object> parameters) {
        answers.add(new Answer(outputs, parameters, Clock.system().nanos()));
    }

    @Override
    public synchronized void complete(List<Tensor> outputs, Map<String, Object> parameters) {
        respond(outputs, parameters);
        end("complete");
    }

    @Override
    public void finish() {
        end("finish");
    }

    @Override
    public synchronized void fail(ServingException e) {
        failure = e;
        end("fail");
    }

    @Override
    public void reschedule() {
        end("reschedule");
    }

    private synchronized void end(String how) {
        ends.add(how);
        ended.countDown();
    }

    /** Waits for the end; false when it does not come within ten seconds. */
    public boolean awaitEnd() throws InterruptedException {
        return ended.await(10, TimeUnit.SECONDS);
    }

    /** How it was ended, in order: complete, finish, fail, reschedule; one of them if the model is right. */
    public synchronized List<String> ends() {
        return List.copyOf(ends);
    }

    /** The answers so far. */
    public synchronized List<Answer> answers() {
        return List.copyOf(answers);
    }

    /** Why it failed, or null. */
    public synchronized @Nullable ServingException failure() {
        return failure;
    }

    /** Gives up inputs and answers. */
    @Override
    public synchronized void close() {
        request.release();
        for (Answer answer : answers) {
            Tensor.closeAll(answer.outputs());
        }
        answers.clear();
    }
}
