// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.servable;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.engine.cache.VersionResponseCache;
import io.nereid.engine.request.RequestValidator;
import io.nereid.engine.request.ScalarShapes;
import io.nereid.engine.request.TabularInputs;
import io.nereid.observe.RequestTrace;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableId;
import io.nereid.tensor.Tensor;
import java.util.List;

/**
 * Makes a job of a client's request and submits it to a servable. The steps are:
 *
 * <ol>
 *   <li>adapt the shapes of scalars and tabular inputs to the model;
 *   <li>find the servable of the signature that the request selects;
 *   <li>validate the inputs and outputs against the model's configuration;
 *   <li>start the trace and count the request;
 *   <li>look the response up in the cache, if there is one;
 *   <li>submit the job to the servable, which queues it.
 * </ol>
 *
 * A validation error is reported through the job as well, so that statistics and traces contain rejected requests.
 * Thread-safe; runs on the caller's thread and does not block, except for a model that the scheduler runs inline.
 */
public final class RequestSubmitter {
    /** The call of a request that has ended. */
    public static final InferenceCall ENDED = () -> {};

    private final Clock clock;

    public RequestSubmitter(Clock clock) {
        this.clock = clock;
    }

    /**
     * Submits a request. Owns {@code handle} and the request from here on.
     *
     * @param handle keeps the servable loaded; closed when the request has ended
     * @param clientRequest the request as the client sent it
     */
    public InferenceCall submit(
            EngineServable servable, AutoCloseable handle, InferenceRequest clientRequest, ResponseSink clientSink) {
        InferenceRequest request = clientRequest;
        ResponseSink sink = clientSink;
        ScalarShapes scalars = servable.scalarShapes();
        if (scalars != null && clientRequest.options().signature().equals(ModelMetadata.DEFAULT_SIGNATURE)) {
            request = scalars.toModel(clientRequest);
            sink = scalars.toClient(clientSink);
        }
        InferenceRequest validated = request;
        EngineServable target = servable;
        int rows = 0;
        ServingException error = null;
        try {
            String signature = request.options().signature();
            if (signature.isEmpty() && !request.parameters().isEmpty()) {
                signature = servable.signatureFor(request.parameters());
            }
            if (signature.isEmpty() && !request.outputs().isEmpty()) {
                signature = servable.signatureWith(request.outputs());
            }
            if (!signature.isEmpty()) {
                target = servable.signature(signature);
            }
            TabularInputs tables = target.tabularInputs();
            if (tables != null) {
                request = tables.toModel(request);
                validated = request;
            }
            RequestValidator validator = target.validator();
            List<Tensor> inputs = validator.inputs(request);
            rows = validator.batchSize(inputs);
            validator.outputs(request.outputs());
            // The validator returns the inputs in the model's order; without a change, the request is used as it is.
            validated = inputs == request.inputs() ? request : request.with(inputs, request.outputs());
        } catch (ServingException e) {
            error = e;
        } catch (RuntimeException e) {
            error = ServingException.from(e);
        }
        RequestTrace trace = request.options().trace();
        if (trace != null) {
            ServableId id = servable.metadata().id();
            trace.model(id.model(), id.version(), request.id());
            trace.event(RequestTrace.Event.REQUEST_START, clock.nanos());
        }
        EngineServable accepting = target;
        accepting.statistics().accepted.increment();
        RequestJob job = new RequestJob(validated, request, rows, accepting, handle, sink, clock);
        if (error != null) {
            job.fail(error);
            return ENDED;
        }
        try {
            VersionResponseCache cache = accepting.cache();
            if (cache == null) {
                accepting.submit(job);
            } else {
                cache.serve(job, () -> accepting.submit(job));
            }
        } catch (RuntimeException e) {
            job.fail(ServingException.from(e));
        }
        return job;
    }
}
