// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.grpc;

import io.nereid.base.ErrorCode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.protobuf.ProtobufWriter;
import io.nereid.protocols.v1.common.ModelLookup;
import io.nereid.protocols.v1.common.TfServingMetrics.Api;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.Signature;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Tensor;
import io.nereid.tfdata.ModelSpec;
import io.nereid.tfdata.PredictMessageReader;
import io.nereid.tfdata.TensorProtoCodec;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.ResponseBody;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * One Predict call, from the request message to the response. Thread-safe: the steps run one after the other, possibly
 * on different threads; only {@link #onCancel} runs concurrently.
 */
final class GrpcPredict extends GrpcUnaryHandler implements ResponseSink {
    /** Smaller tensors are copied into the message's buffer: one piece is written faster than several. */
    private static final int COPIED = 1024;

    private final GrpcContext context;
    private final GrpcCall call;
    private ModelSpec spec = ModelSpec.of("");
    private String platform = "";
    private long startedAt;
    private boolean counted;
    private boolean ended;
    private volatile @Nullable InferenceCall inference;
    private volatile boolean cancelled;

    GrpcPredict(GrpcContext context, GrpcCall call) {
        this.context = context;
        this.call = call;
    }

    @Override
    void message(MemoryRegion message) {
        PredictMessageReader reader = context.tools().predict;
        reader.scanRequest(message);
        if (GrpcContext.mustOffload(call, reader.bytesToConvert())) {
            reader.clear();
            message.retain();
            try {
                context.offload(() -> readOnPool(message));
            } catch (ServingException e) {
                message.release();
                throw e;
            }
        } else {
            infer(reader);
        }
    }

    private void readOnPool(MemoryRegion message) {
        try {
            if (!cancelled) {
                PredictMessageReader reader = context.tools().predict;
                reader.scanRequest(message);
                infer(reader);
            }
        } catch (RuntimeException | OutOfMemoryError e) {
            call.fail(ServingException.from(e));
        } finally {
            message.release();
        }
    }

    private void infer(PredictMessageReader reader) {
        InferenceRequest request;
        try {
            spec = GrpcContext.required(reader.spec());
            request = request(reader);
        } catch (ServingException e) {
            reader.clear();
            context.metrics.rejected(spec.name(), e.code());
            throw e;
        }
        context.metrics.started(spec.name());
        counted = true;
        startedAt = context.now();
        InferenceCall begun = context.engine.infer(request, this);
        inference = begun;
        if (cancelled) {
            begun.cancel();
        }
    }

    private InferenceRequest request(PredictMessageReader reader) {
        ModelRef ref = spec.ref();
        ModelMetadata metadata = context.metadata(ref);
        platform = metadata.platform();
        Signature signature = metadata.signature(spec.signature());
        if (signature == null) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "Serving signature key \"" + spec.signature() + "\" not found.",
                    NameSuggestions.didYouMean(
                            spec.signature(),
                            metadata.signatures().keySet(),
                            "the model's signatures are "
                                    + new TreeSet<>(metadata.signatures().keySet())));
        }
        if (context.options.methodCheck()) {
            Signature unused = context.signature(metadata, spec.signature(), Api.PREDICT);
        }
        checkInputs(signature.inputs(), reader.names());
        List<RequestedOutput> filter = reader.filter();
        if (!filter.isEmpty()) {
            checkFilter(signature.outputs(), filter);
        }
        return new InferenceRequest(
                ref,
                "",
                reader.tensors(),
                filter,
                Map.of(),
                call.deadlineNanos(),
                call.arrivedNanos(),
                ModelLookup.options(spec.signature()),
                call.caller());
    }

    private static void checkInputs(List<TensorSpec> needed, List<String> sent) {
        int found = 0;
        boolean complete = true;
        for (int i = 0; i < needed.size(); i++) {
            TensorSpec input = needed.get(i);
            if (sent.contains(input.name())) {
                found++;
            } else {
                complete &= input.optional();
            }
        }
        if (complete && found == sent.size()) {
            return;
        }
        Collection<String> have = new TreeSet<>(sent);
        Collection<String> names = new TreeSet<>();
        Collection<String> required = new TreeSet<>();
        for (TensorSpec input : needed) {
            names.add(input.name());
            if (!input.optional() && !have.contains(input.name())) {
                required.add(input.name());
            }
        }
        Collection<String> extra = new TreeSet<>(have);
        extra.removeAll(names);
        throw ServingException.invalidArgument("input size does not match signature: " + have.size() + "!="
                + names.size() + " len({" + join(have) + "}) != len({" + join(names) + "}). Sent extra: {"
                + join(extra) + "}. Missing but required: {" + join(required) + "}.");
    }

    private static String join(Collection<String> names) {
        return String.join(",", names);
    }

    private static void checkFilter(List<TensorSpec> outputs, List<RequestedOutput> filter) {
        for (int i = 0; i < filter.size(); i++) {
            String name = filter.get(i).name();
            boolean known = false;
            for (TensorSpec output : outputs) {
                known |= output.name().equals(name);
            }
            if (!known) {
                throw ServingException.invalidArgument("output tensor alias not found in signature: " + name
                        + " Outputs expected to be in the set {"
                        + join(new TreeSet<>(
                                outputs.stream().map(TensorSpec::name).toList()))
                        + "}.");
            }
            for (int j = 0; j < i; j++) {
                if (filter.get(j).name().equals(name)) {
                    throw ServingException.invalidArgument("duplicate output tensor alias: " + name);
                }
            }
        }
    }

    @Override
    public void onCancel() {
        cancelled = true;
        InferenceCall begun = inference;
        if (begun != null) {
            begun.cancel();
        }
    }

    @Override
    public void next(InferenceResponse response, boolean last) {
        if (ended) {
            response.close();
            return;
        }
        ended = true;
        if (!last || response.outputs().isEmpty()) {
            response.close();
            onCancel();
            end(ServingException.of(
                    ErrorCode.UNIMPLEMENTED,
                    "Predict does not serve models that give any number of answers (decoupled)",
                    "use the streaming call of the Open Inference Protocol"));
            return;
        }
        if (context.metrics.measuring()) {
            context.metrics.ran(spec.name(), Api.PREDICT, platform, context.now() - startedAt);
        }
        if (cancelled || !GrpcContext.mustOffload(call, bytesToConvert(response))) {
            encode(response);
            return;
        }
        try {
            context.offload(() -> encode(response));
        } catch (ServingException e) {
            response.close();
            end(e);
        }
    }

    private long bytesToConvert(InferenceResponse response) {
        long bytes = 0;
        for (Tensor output : response.outputs()) {
            DataType type = output.dataType();
            boolean asItIs = type == DataType.FP32
                    || type == DataType.FP64
                    || context.options.tensorContent() && type.isFixedSize();
            bytes += asItIs ? 0 : output.byteLength();
        }
        return bytes;
    }

    private void encode(InferenceResponse response) {
        ResponseBody content;
        try {
            content = content(response);
        } catch (RuntimeException | OutOfMemoryError e) {
            response.close();
            end(
                    e instanceof IllegalStateException
                            ? ServingException.of(
                                    ErrorCode.RESOURCE_EXHAUSTED,
                                    "the response has 2 GiB or more, which is more than a message can have",
                                    "ask for fewer rows, or for some outputs with output_filter")
                            : ServingException.from(e));
            return;
        }
        call.sendAndClose(content);
        context.finished(spec.name(), Api.PREDICT, ErrorCode.OK, call);
    }

    /** Encodes the response and takes its outputs over, unless it throws. */
    private ResponseBody content(InferenceResponse response) {
        ProtobufWriter out = context.tools().writer();
        List<Tensor> outputs = response.outputs();
        int[] positions = new int[outputs.size()];
        long spliced = 0;
        for (int i = 0; i < positions.length; i++) {
            Tensor output = outputs.get(i);
            int entry = out.begin(1);
            out.presentTextField(1, output.name());
            int value = out.begin(2);
            int rest = TensorProtoCodec.writeHead(out, output, context.options.tensorContent());
            if (rest > 0 && rest < COPIED) {
                int at = out.reserve(rest);
                output.region().getBytes(output.offset(), out.array(), at, rest);
                rest = 0;
            }
            out.end(value, rest);
            out.end(entry, rest);
            positions[i] = rest > 0 ? out.length() : -1;
            spliced += rest;
        }
        GrpcContext.answered(response.servable().model(), response.servable().version(), spec.signature())
                .write(out, 2);
        if (spliced + out.length() > Integer.MAX_VALUE - 64) {
            throw new IllegalStateException("a message of 2 GiB or more");
        }
        ResponseBody content = new ResponseBody(out.array(), out.length());
        for (int i = 0; i < positions.length; i++) {
            if (positions[i] >= 0) {
                content.splice(outputs.get(i), positions[i]);
            } else {
                outputs.get(i).close();
            }
        }
        return content;
    }

    private void end(ServingException e) {
        call.fail(e);
        if (counted) {
            context.finished(spec.name(), Api.PREDICT, e.code(), call);
        }
    }

    @Override
    public void fail(ServingException e) {
        if (!ended) {
            ended = true;
            end(GrpcContext.missing(spec.ref(), e));
        }
    }
}
