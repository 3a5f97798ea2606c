// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.grpc;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.protobuf.ProtobufReader;
import io.nereid.protobuf.ProtobufWriter;
import io.nereid.protobuf.StringInterner;
import io.nereid.protocols.v1.common.ExampleOutputs;
import io.nereid.protocols.v1.common.ExampleOutputs.Scored;
import io.nereid.protocols.v1.common.ModelLookup;
import io.nereid.protocols.v1.common.TfServingMetrics.Api;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.Signature;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tfdata.ExampleList;
import io.nereid.tfdata.ExampleSignatures;
import io.nereid.tfdata.ExampleTensors;
import io.nereid.tfdata.ModelSpec;
import io.nereid.transport.api.GrpcCall;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * One Classify, Regress or MultiInference call: one or more tasks over the same examples, which run concurrently and
 * have one response. Thread-safe: each task has its own result; the last one that ends, or the first one that fails,
 * ends the call.
 */
final class GrpcExampleInference extends GrpcUnaryHandler {
    private final GrpcContext context;
    private final GrpcCall call;
    private final Api api;
    private final AtomicInteger open = new AtomicInteger();
    private volatile List<Task> tasks = List.of();
    private volatile boolean cancelled;
    private String model = "";
    private int count;

    GrpcExampleInference(GrpcContext context, GrpcCall call, Api api) {
        this.context = context;
        this.call = call;
        this.api = api;
    }

    @Override
    void message(MemoryRegion message) {
        if (!GrpcContext.mustOffload(call, message.size())) {
            start(message);
            return;
        }
        message.retain();
        try {
            context.offload(() -> {
                try {
                    start(message);
                } catch (RuntimeException | OutOfMemoryError e) {
                    call.fail(ServingException.from(e));
                } finally {
                    message.release();
                }
            });
        } catch (ServingException e) {
            message.release();
            throw e;
        }
    }

    private void start(MemoryRegion message) {
        List<Task> begun = new ArrayList<>();
        List<InferenceRequest> requests = new ArrayList<>();
        try {
            read(message, begun, requests);
        } catch (ServingException e) {
            requests.forEach(InferenceRequest::release);
            context.metrics.rejected(model, e.code());
            throw e;
        }
        context.metrics.started(model);
        open.set(begun.size());
        tasks = begun;
        for (int i = 0; i < begun.size(); i++) {
            begun.get(i).start(requests.get(i));
        }
    }

    private void read(MemoryRegion message, List<Task> begun, List<InferenceRequest> requests) {
        GrpcContext.Tools tools = context.tools();
        ProtobufReader wire = tools.wire;
        wire.reset(message.buffer(0, message.size()));
        ModelSpec spec = null;
        ExampleList examples = ExampleList.of(List.of(), null);
        while (wire.hasMore()) {
            int tag = wire.readTag();
            switch (tag) {
                case 1 << 3 | ProtobufReader.BYTES -> {
                    int outer = wire.enter();
                    if (api == Api.MULTI_INFERENCE) {
                        begun.add(task(wire, tools.names));
                    } else {
                        spec = ModelSpec.read(wire, tools.names, spec);
                    }
                    wire.leave(outer);
                }
                case 2 << 3 | ProtobufReader.BYTES -> {
                    int outer = wire.enter();
                    examples = ExampleList.read(wire);
                    wire.leave(outer);
                }
                default -> wire.skipField(tag);
            }
        }
        wire.clear();
        if (api != Api.MULTI_INFERENCE) {
            ModelSpec given = GrpcContext.required(spec);
            begun.add(new Task(given, api == Api.CLASSIFY ? Signature.CLASSIFY : Signature.REGRESS));
        }
        checkNames(begun);
        count = examples.size();
        for (Task task : begun) {
            requests.add(request(task, examples));
        }
    }

    private Task task(ProtobufReader wire, StringInterner names) {
        ModelSpec spec = null;
        String method = "";
        while (wire.hasMore()) {
            int tag = wire.readTag();
            switch (tag) {
                case 1 << 3 | ProtobufReader.BYTES -> {
                    int outer = wire.enter();
                    spec = ModelSpec.read(wire, names, spec);
                    wire.leave(outer);
                }
                case 2 << 3 | ProtobufReader.BYTES -> method = wire.readText(names);
                default -> wire.skipField(tag);
            }
        }
        return new Task(spec == null ? ModelSpec.of("") : spec, method);
    }

    private void checkNames(List<Task> all) {
        if (all.isEmpty()) {
            throw ServingException.invalidArgument("Input is empty.", "a MultiInferenceRequest needs one task or more");
        }
        Set<String> seen = new HashSet<>();
        model = all.get(0).spec.name();
        for (Task task : all) {
            if (task.spec.name().isEmpty()) {
                throw ServingException.invalidArgument("Found ModelSpec with an empty model name.");
            }
            if (!task.spec.name().equals(model)) {
                throw ServingException.invalidArgument(
                        "All ModelSpecs in a MultiInferenceRequest must access the same model name.");
            }
            if (!seen.add(task.signatureName())) {
                throw ServingException.invalidArgument("Duplicate evaluation of signature: " + task.signatureName());
            }
        }
    }

    private InferenceRequest request(Task task, ExampleList examples) {
        GrpcContext.required(task.spec);
        ModelMetadata metadata = context.metadata(task.spec.ref());
        String name = task.spec.signature();
        if (api == Api.MULTI_INFERENCE) {
            if (metadata.signature(name) == null) {
                throw ServingException.invalidArgument(
                        "Requested signature not found in model graph: " + task.signatureName());
            }
            if (!task.method.equals(Signature.CLASSIFY) && !task.method.equals(Signature.REGRESS)) {
                throw ServingException.of(
                        ErrorCode.UNIMPLEMENTED,
                        "Unsupported signature method_name: " + task.method,
                        "expected " + Signature.CLASSIFY + " or " + Signature.REGRESS);
            }
        }
        task.platform = metadata.platform();
        task.exact = ExampleSignatures.ofSavedModel(metadata);
        Signature signature = context.signature(metadata, name, task.api());
        return new InferenceRequest(
                task.spec.ref(),
                "",
                ExampleTensors.of(metadata, signature, examples),
                List.of(),
                Map.of(),
                call.deadlineNanos(),
                call.arrivedNanos(),
                ModelLookup.options(name),
                call.caller());
    }

    @Override
    public void onCancel() {
        cancelled = true;
        for (Task task : tasks) {
            task.cancel();
        }
    }

    /** Ends the call with the first failure of a task; -1 marks a call that has ended. */
    private void failed(ServingException e) {
        if (open.getAndSet(-1) > 0) {
            call.fail(e);
            context.finished(model, api, e.code(), call);
            onCancel();
        }
    }

    /** Counts a task that has ended; sends the response after the last one, unless another task has failed. */
    private void ended() {
        int left = open.get();
        while (left > 0 && !open.compareAndSet(left, left == 1 ? -1 : left - 1)) {
            left = open.get();
        }
        if (left == 1) {
            send(call, answer());
            context.finished(model, api, ErrorCode.OK, call);
            if (context.metrics.measuring()) {
                context.metrics.examples(model, count);
            }
        }
    }

    private ProtobufWriter answer() {
        ProtobufWriter out = context.tools().writer();
        for (Task task : tasks) {
            if (api != Api.MULTI_INFERENCE) {
                task.write(out, 1);
                task.answered.write(out, 2);
                continue;
            }
            int result = out.begin(1);
            task.answered.write(out, 1);
            task.write(out, task.api() == Api.CLASSIFY ? 2 : 3);
            out.end(result);
        }
        return out;
    }

    /** The inference of one signature. The engine calls it on one thread at a time. */
    private final class Task implements ResponseSink {
        private final ModelSpec spec;
        private final String method;
        private String platform = "";
        private boolean exact;
        private long startedAt;
        private boolean done;
        private volatile @Nullable InferenceCall inference;
        private ModelSpec answered = ModelSpec.of("");
        private List<List<Scored>> classes = List.of();
        private float[] values = {};

        Task(ModelSpec spec, String method) {
            this.spec = spec;
            this.method = method;
        }

        Api api() {
            return method.equals(Signature.CLASSIFY) ? Api.CLASSIFY : Api.REGRESS;
        }

        String signatureName() {
            return GrpcContext.isDefault(spec.signature()) ? ModelMetadata.DEFAULT_SIGNATURE : spec.signature();
        }

        void start(InferenceRequest request) {
            startedAt = context.now();
            InferenceCall begun = context.engine.infer(request, this);
            inference = begun;
            if (cancelled) {
                begun.cancel();
            }
        }

        void cancel() {
            InferenceCall begun = inference;
            if (begun != null) {
                begun.cancel();
            }
        }

        @Override
        public void next(InferenceResponse response, boolean last) {
            try (response) {
                if (done || response.outputs().isEmpty() && !last) {
                    return;
                }
                done = true;
                if (context.metrics.measuring()) {
                    context.metrics.ran(model, api, platform, context.now() - startedAt);
                }
                answered = GrpcContext.answered(
                        response.servable().model(), response.servable().version(), spec.signature());
                if (api() == Api.CLASSIFY) {
                    classes = ExampleOutputs.classes(response.outputs(), count, exact);
                } else {
                    values = ExampleOutputs.values(response.outputs(), count, exact);
                }
            } catch (RuntimeException | OutOfMemoryError e) {
                failed(ServingException.from(e));
                return;
            }
            ended();
        }

        @Override
        public void fail(ServingException e) {
            if (!done) {
                done = true;
                failed(GrpcContext.missing(spec.ref(), e));
            }
        }

        /** Writes the result as a message field. */
        void write(ProtobufWriter out, int field) {
            int result = out.begin(field);
            for (List<Scored> of : classes) {
                int example = out.begin(1);
                for (Scored each : of) {
                    int one = out.begin(1);
                    if (each.label().length > 0) {
                        out.bytesField(1, each.label());
                    }
                    writeFloat(out, 2, each.score());
                    out.end(one);
                }
                out.end(example);
            }
            for (float value : values) {
                int one = out.begin(1);
                writeFloat(out, 1, value);
                out.end(one);
            }
            out.end(result);
        }

        private void writeFloat(ProtobufWriter out, int field, float value) {
            if (Float.floatToRawIntBits(value) != 0) {
                out.floatField(field, value);
            }
        }
    }
}
