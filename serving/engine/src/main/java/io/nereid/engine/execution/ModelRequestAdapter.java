// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.execution;

import io.nereid.backend.ModelRequest;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.scheduling.ReschedulableJob;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Presents a job to a model that takes requests. Ends the job once, on the thread on which the model answers;
 * responses after the end are dropped. Thread-safe, as {@link ModelRequest} requires.
 */
public final class ModelRequestAdapter implements ModelRequest {
    private final InferenceJob job;
    private final InferenceRequest request;
    private final List<Tensor> fed;
    private final List<String> wanted;
    private final OutputSplitter split;
    private final String model;
    private final boolean decoupled;
    private final RequestExecution run;
    private final AtomicBoolean ended = new AtomicBoolean();

    /**
     * Creates the adapter.
     *
     * @param fed the inputs as the model sees them: the list of the job's request, or a list that is closed at the end
     * @param run the run of the whole batch
     */
    public ModelRequestAdapter(
            InferenceJob job,
            List<Tensor> fed,
            List<String> wanted,
            OutputSplitter split,
            String model,
            boolean decoupled,
            RequestExecution run) {
        this.job = job;
        this.request = fed == job.request().inputs()
                ? job.request()
                : job.request().with(fed, job.request().outputs());
        this.fed = fed;
        this.wanted = wanted;
        this.split = split;
        this.model = model;
        this.decoupled = decoupled;
        this.run = run;
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
    public boolean cancelled() {
        return job.cancelled();
    }

    @Override
    public void respond(List<Tensor> outputs, Map<String, Object> parameters) {
        if (!decoupled) {
            Tensor.closeAll(outputs);
            ServingException e = ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "model '" + model + "' is not decoupled, but sent more than one response");
            fail(single("2 or more"));
            throw e;
        }
        if (ended.get()) {
            Tensor.closeAll(outputs);
            return;
        }
        List<Tensor> answer;
        try {
            answer = split.request(job, outputs, wanted);
        } catch (ServingException e) {
            fail(e);
            return;
        }
        run.answered();
        job.respond(answer, run.parameters(parameters));
    }

    @Override
    public void complete(List<Tensor> outputs, Map<String, Object> parameters) {
        if (!ended.compareAndSet(false, true)) {
            Tensor.closeAll(outputs);
            return;
        }
        List<Tensor> answer;
        long to = run.answered();
        try {
            answer = split.request(job, outputs, wanted);
        } catch (ServingException e) {
            drop();
            job.fail(e);
            return;
        }
        drop();
        job.ran(run.from(), to, run.rows());
        job.complete(answer, run.parameters(parameters));
    }

    @Override
    public void finish() {
        if (!decoupled) {
            fail(single("0"));
        } else if (ended.compareAndSet(false, true)) {
            drop();
            job.ran(run.from(), run.answered(), run.rows());
            job.complete(List.of(), run.parameters(Map.of()));
        }
    }

    @Override
    public void fail(ServingException e) {
        if (ended.compareAndSet(false, true)) {
            drop();
            job.fail(e);
        }
    }

    @Override
    public void reschedule() {
        if (!(job instanceof ReschedulableJob again)) {
            fail(ServingException.of(
                    ErrorCode.INTERNAL,
                    "model '" + model + "' rescheduled a request, which only models with iterative sequences may do"));
        } else if (ended.compareAndSet(false, true)) {
            drop();
            job.ran(run.from(), run.answered(), run.rows());
            again.reschedule();
        }
    }

    /** The model, which is not decoupled, has returned without a response. */
    void unanswered() {
        fail(single("0"));
    }

    /** The run is over: removes the action that would cancel it. */
    void withdraw() {
        if (!ended.get()) {
            job.onCancel(null);
        }
    }

    private ServingException single(String got) {
        return ServingException.of(
                ErrorCode.INTERNAL, "expected a single response, got " + got + " from model '" + model + "'");
    }

    private void drop() {
        if (fed != job.request().inputs()) {
            Tensor.closeAll(fed);
        }
    }
}
