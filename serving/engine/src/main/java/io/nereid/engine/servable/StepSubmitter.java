// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.servable;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.device.Devices;
import io.nereid.lifecycle.ServableHandle;
import io.nereid.lifecycle.ServableManager;
import io.nereid.observe.RequestTrace;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.tensor.DeviceRegion;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * Submits the steps of ensembles on a server with GPUs. An input in the memory of a GPU goes to the model as it is when the model
 * takes it there; otherwise it is copied to the host first, on the GPU's thread for copies. An ensemble that knows its readers
 * has made that copy before, so that none is made here unless a model was replaced meanwhile. Thread-safe; does not
 * block.
 */
public final class StepSubmitter {
    private final InferenceEngine engine;
    private final ServableManager manager;
    private final RequestSubmitter submitter;
    private final Devices devices;

    /** @param engine takes the requests whose inputs are on the host */
    public StepSubmitter(InferenceEngine engine, ServableManager manager, RequestSubmitter submitter, Devices devices) {
        this.engine = engine;
        this.manager = manager;
        this.submitter = submitter;
        this.devices = devices;
    }

    /**
     * Whether a model takes an input in the memory of a GPU now.
     *
     * @param device the ordinal of the GPU
     */
    public boolean takesDeviceTensors(ModelRef model, int device) {
        if (model.label() != null) {
            return false; // a copy of the request may go to a version that runs elsewhere
        }
        try (ServableHandle handle = manager.acquire(model)) {
            return ((EngineServable) handle.servable()).takesDeviceTensors(device);
        } catch (ServingException e) {
            return false; // it is being replaced or is gone: the step will say so
        }
    }

    /** Submits a request, as {@link InferenceEngine#infer} does. */
    public InferenceCall infer(InferenceRequest request, ResponseSink sink) {
        DeviceRegion first = onDevice(request.inputs());
        if (first == null) {
            return engine.infer(request, sink);
        }
        if (request.model().label() == null) {
            ServableHandle handle;
            try {
                handle = manager.acquire(request.model());
            } catch (ServingException e) {
                request.release();
                sink.fail(e);
                return RequestSubmitter.ENDED;
            }
            EngineServable servable = (EngineServable) handle.servable();
            if (takes(servable, request)) {
                return submitter.submit(servable, handle, request, sink);
            }
            handle.close();
        }
        if (readable(request.inputs())) {
            return engine.infer(onHost(request), sink);
        }
        Copied call = new Copied(request, sink);
        try {
            devices.transfers().thread(first.device()).execute(call);
        } catch (RejectedExecutionException e) {
            call.fail(ServingException.of(ErrorCode.UNAVAILABLE, "the server is stopping"));
        }
        return call;
    }

    private static boolean takes(EngineServable servable, InferenceRequest request) {
        RequestTrace trace = request.options().trace();
        if (trace != null && trace.includesTensors()) {
            return false;
        }
        for (Tensor input : request.inputs()) {
            DeviceRegion region = input.deviceRegion();
            if (region != null && !servable.takesDeviceTensors(region.device())) {
                return false;
            }
        }
        return true;
    }

    private static @Nullable DeviceRegion onDevice(List<Tensor> inputs) {
        for (Tensor input : inputs) {
            DeviceRegion region = input.deviceRegion();
            if (region != null) {
                return region;
            }
        }
        return null;
    }

    private static boolean readable(List<Tensor> inputs) {
        for (Tensor input : inputs) {
            DeviceRegion region = input.deviceRegion();
            if (region != null && !region.isOnHost()) {
                return false;
            }
        }
        return true;
    }

    /** The request with inputs in memory of the host; blocks unless they are readable. Takes the request over if it returns. */
    private static InferenceRequest onHost(InferenceRequest request) {
        List<Tensor> inputs = new ArrayList<>(request.inputs().size());
        try {
            for (Tensor input : request.inputs()) {
                inputs.add(input.retainOnHost());
            }
        } catch (RuntimeException e) {
            Tensor.closeAll(inputs);
            throw e;
        }
        request.release();
        return request.with(inputs, request.outputs());
    }

    /** A request that is submitted once its inputs have been copied. */
    private final class Copied implements InferenceCall, Runnable {
        private final InferenceRequest request;
        private final ResponseSink sink;
        private boolean cancelled;
        private @Nullable InferenceCall call;

        Copied(InferenceRequest request, ResponseSink sink) {
            this.request = request;
            this.sink = sink;
        }

        void fail(ServingException e) {
            request.release();
            sink.fail(e);
        }

        private synchronized boolean isCancelled() {
            return cancelled;
        }

        @Override
        public void run() {
            if (isCancelled()) {
                fail(ServingException.of(ErrorCode.CANCELLED, "Request was cancelled by its client"));
                return;
            }
            InferenceRequest copied;
            try {
                copied = onHost(request);
            } catch (RuntimeException e) {
                fail(ServingException.from(e));
                return;
            }
            InferenceCall started = engine.infer(copied, sink);
            boolean late;
            synchronized (this) {
                call = started;
                late = cancelled;
            }
            if (late) {
                started.cancel();
            }
        }

        @Override
        public void cancel() {
            InferenceCall started;
            synchronized (this) {
                cancelled = true;
                started = call;
            }
            if (started != null) {
                started.cancel();
            }
        }
    }
}
