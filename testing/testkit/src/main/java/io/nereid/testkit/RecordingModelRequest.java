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
 * A fake model request that records its responses. Until {@link #close} it owns its inputs, and the responses that the
 * test has not taken. Thread-safe.
 */
public final class RecordingModelRequest implements ModelRequest, AutoCloseable {
    /**
     * A recorded response.
     *
     * @param outputs the outputs, owned by the request that recorded them
     * @param parameters the response parameters
     * @param nanos the time of the response, by the system's clock
     */
    public record Answer(List<Tensor> outputs, Map<String, Object> parameters, long nanos) {}

    private final InferenceRequest request;
    private final List<String> requested;
    private final CountDownLatch ended = new CountDownLatch(1);
    private final List<Answer> answers = new ArrayList<>();
    private final List<String> ends = new ArrayList<>();
    private @Nullable ServingException failure;
    private boolean cancelled;

    /** Creates a request, which takes ownership of the inputs. */
    public RecordingModelRequest(List<Tensor> inputs, List<String> requested) {
        this(inputs, requested, InferenceRequest.Options.NONE);
    }

    /** Creates a request with options. */
    public RecordingModelRequest(List<Tensor> inputs, List<String> requested, InferenceRequest.Options options) {
        this.requested = List.copyOf(requested);
        this.request = new InferenceRequest(
                ModelRef.latest("model"), "", inputs, List.of(), Map.of(), Long.MAX_VALUE, 0, options);
    }

    @Override
    public InferenceRequest request() {
        return request;
    }

    @Override
    public List<String> outputs() {
        return requested;
    }

    @Override
    public synchronized boolean cancelled() {
        return cancelled;
    }

    /** Cancels the request, as for a client that closes the connection. */
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

    /** Waits up to ten seconds for the end of the request. Returns whether it has ended. */
    public boolean awaitEnd() throws InterruptedException {
        return ended.await(10, TimeUnit.SECONDS);
    }

    /**
     * Returns the calls that ended the request (complete, finish, fail, reschedule); exactly one for a correct model.
     */
    public synchronized List<String> ends() {
        return List.copyOf(ends);
    }

    /** Returns the responses so far. */
    public synchronized List<Answer> answers() {
        return List.copyOf(answers);
    }

    /** Returns the failure, or null. */
    public synchronized @Nullable ServingException failure() {
        return failure;
    }

    /** Releases inputs and responses. */
    @Override
    public synchronized void close() {
        request.release();
        for (Answer answer : answers) {
            Tensor.closeAll(answer.outputs());
        }
        answers.clear();
    }
}
