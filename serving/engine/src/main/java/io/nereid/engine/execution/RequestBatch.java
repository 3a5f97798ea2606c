// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.execution;

import io.nereid.backend.ModelRequest;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.statistics.ModelStatistics;
import io.nereid.scheduling.ReschedulableJob;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * One run of a model that takes requests instead of tensors: presents the jobs of a batch to the model as
 * {@link ModelRequest}s. The run is counted when its first request is answered, so that a client that has a response
 * also finds the run in the statistics. Thread-safe once all jobs are added: the model may answer on any thread, and
 * after the run has returned.
 */
final class RequestBatch {
    private final String model;
    private final boolean decoupled;
    private final OutputSplitter splitter;
    private final int rows;
    private final ModelStatistics statistics;
    private final Clock clock;
    private final Map<String, Object> parameters;
    private final long from;
    private final AtomicBoolean counted = new AtomicBoolean();
    private final List<Request> requests;

    /**
     * Creates a run that starts now.
     *
     * @param rows rows of all jobs
     * @param parameters response parameters that are common to the run
     */
    RequestBatch(
            String model,
            boolean decoupled,
            OutputSplitter splitter,
            int jobs,
            int rows,
            ModelStatistics statistics,
            Clock clock,
            Map<String, Object> parameters) {
        this.model = model;
        this.decoupled = decoupled;
        this.splitter = splitter;
        this.rows = rows;
        this.statistics = statistics;
        this.clock = clock;
        this.parameters = parameters;
        this.from = clock.nanos();
        this.requests = new ArrayList<>(jobs);
    }

    /**
     * Adds a job. Called by the thread that runs the batch, before the run.
     *
     * @param inputs the inputs as the model sees them: the list of the job's request, or a list that is closed at the
     *     end
     * @param outputs the names of the requested outputs
     */
    void add(InferenceJob job, List<Tensor> inputs, List<String> outputs) {
        requests.add(new Request(job, inputs, outputs));
    }

    /** Returns the requests for the model. */
    List<ModelRequest> requests() {
        return List.copyOf(requests);
    }

    /** The run is over: removes the actions that would cancel it. */
    void removeCancelActions() {
        for (Request request : requests) {
            if (!request.ended.get()) {
                request.job.onCancel(null);
            }
        }
    }

    /** Fails the requests that have not ended. */
    void fail(ServingException e) {
        for (Request request : requests) {
            request.fail(e);
        }
    }

    /**
     * The run is over: fails the requests that have not ended, unless the model is decoupled or answers them later. From
     * here on a client that cancels ends a later answer itself, because no run could be cancelled for it.
     */
    void endUnanswered() {
        if (!decoupled) {
            for (Request request : requests) {
                if (request.later && !request.ended.get()) {
                    request.job.onCancel(() -> request.fail(ServingException.of(
                            ErrorCode.CANCELLED, "the client has cancelled the request before the model answered it")));
                } else if (!request.ended.get()) {
                    request.fail(notOneResponse("0"));
                }
            }
        }
    }

    private ServingException notOneResponse(String got) {
        return ServingException.of(
                ErrorCode.INTERNAL, "expected a single response, got " + got + " from model '" + model + "'");
    }

    /** Records that a request is answered and returns the current time. */
    private long answered() {
        long now = clock.nanos();
        if (counted.compareAndSet(false, true)) {
            statistics.executed(rows, 0, now - from, 0);
        }
        return now;
    }

    /** Merges the model's response parameters with those of the run. */
    private Map<String, Object> merge(Map<String, Object> own) {
        if (parameters.isEmpty() || own.isEmpty()) {
            return own.isEmpty() ? parameters : own;
        }
        Map<String, Object> all = new HashMap<>(parameters);
        all.putAll(own);
        return all;
    }

    /**
     * A job of the run. Ends the job once, on the thread on which the model answers; responses after the end are
     * dropped. Thread-safe, as {@link ModelRequest} requires.
     */
    private final class Request implements ModelRequest {
        private final InferenceJob job;
        private final InferenceRequest request;
        private final List<Tensor> inputs;
        private final List<String> outputs;
        private final AtomicBoolean ended = new AtomicBoolean();
        /** Used by the thread that runs the batch alone. */
        private boolean later;

        private Request(InferenceJob job, List<Tensor> inputs, List<String> outputs) {
            this.job = job;
            this.request = inputs == job.request().inputs()
                    ? job.request()
                    : job.request().with(inputs, job.request().outputs());
            this.inputs = inputs;
            this.outputs = outputs;
        }

        @Override
        public InferenceRequest request() {
            return request;
        }

        @Override
        public List<String> outputs() {
            return outputs;
        }

        @Override
        public boolean cancelled() {
            return job.cancelled();
        }

        @Override
        public void respond(List<Tensor> tensors, Map<String, Object> ownParameters) {
            if (!decoupled) {
                Tensor.closeAll(tensors);
                ServingException e = ServingException.of(
                        ErrorCode.FAILED_PRECONDITION,
                        "model '" + model + "' is not decoupled, but sent more than one response");
                fail(notOneResponse("2 or more"));
                throw e;
            }
            if (ended.get()) {
                Tensor.closeAll(tensors);
                return;
            }
            List<Tensor> response;
            try {
                response = splitter.request(job, tensors, outputs);
            } catch (ServingException e) {
                fail(e);
                return;
            }
            answered();
            job.respond(response, merge(ownParameters));
        }

        @Override
        public void complete(List<Tensor> tensors, Map<String, Object> ownParameters) {
            if (!ended.compareAndSet(false, true)) {
                Tensor.closeAll(tensors);
                return;
            }
            List<Tensor> response;
            long to = answered();
            try {
                response = splitter.request(job, tensors, outputs);
            } catch (ServingException e) {
                closeInputs();
                job.fail(e);
                return;
            }
            closeInputs();
            job.ran(from, to, rows);
            job.complete(response, merge(ownParameters));
        }

        @Override
        public void finish() {
            if (!decoupled) {
                fail(notOneResponse("0"));
            } else if (ended.compareAndSet(false, true)) {
                closeInputs();
                job.ran(from, answered(), rows);
                job.complete(List.of(), merge(Map.of()));
            }
        }

        @Override
        public void answerLater() {
            later = true;
        }

        @Override
        public void fail(ServingException e) {
            if (ended.compareAndSet(false, true)) {
                closeInputs();
                job.fail(e);
            }
        }

        @Override
        public void reschedule() {
            if (!(job instanceof ReschedulableJob again)) {
                fail(ServingException.of(
                        ErrorCode.INTERNAL,
                        "model '" + model
                                + "' rescheduled a request, which only models with iterative sequences may do"));
            } else if (ended.compareAndSet(false, true)) {
                closeInputs();
                job.ran(from, answered(), rows);
                again.reschedule();
            }
        }

        /** Closes the inputs if they were made for the model; the others belong to the job. */
        private void closeInputs() {
            if (inputs != job.request().inputs()) {
                Tensor.closeAll(inputs);
            }
        }
    }
}
