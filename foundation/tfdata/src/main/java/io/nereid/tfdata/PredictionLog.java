// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tfdata;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.protobuf.ProtobufReader;
import io.nereid.protobuf.ProtobufWriter;
import io.nereid.protobuf.StringInterner;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.Signature;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A logged call: {@code tensorflow.serving.PredictionLog}, which is also the record format of warm-up files.
 * Immutable, provided that the arrays are not changed.
 *
 * @param kind the type of the call
 * @param model the model spec of the log's metadata; null when it is missing
 * @param samplingRate the fraction of calls that were logged; 0 when it is missing
 * @param timestampSecs the time of the call in seconds of the Unix epoch; 0 when it is missing
 * @param request the serialized request message, of the type that {@code kind} defines
 * @param response the serialized response message; null when only the request was logged
 */
@SuppressWarnings("ArrayRecordComponent")
public record PredictionLog(
        Kind kind,
        @Nullable ModelSpec model,
        double samplingRate,
        long timestampSecs,
        byte[] request,
        byte @Nullable [] response) {
    private static final byte[] NOTHING = {};

    /** The type of the logged call. */
    public enum Kind {
        /** A record without a call. */
        NONE(0, ""),
        CLASSIFY(2, "classify_log"),
        REGRESS(3, "regress_log"),
        MULTI_INFERENCE(4, "multi_inference_log"),
        SESSION_RUN(5, "session_run_log"),
        PREDICT(6, "predict_log"),
        PREDICT_STREAMED(7, "predict_streamed_log");

        private final int field;
        private final String fieldName;

        Kind(int field, String fieldName) {
            this.field = field;
            this.fieldName = fieldName;
        }

        /** The name of the protobuf field that holds the call. */
        public String fieldName() {
            return fieldName;
        }

        private static Kind of(int field) {
            return field >= 2 && field <= 7 ? values()[field - 1] : NONE;
        }
    }

    /**
     * Parses a serialized log.
     *
     * @throws ServingException INVALID_ARGUMENT for a malformed message
     */
    public static PredictionLog parse(byte[] message) {
        ProtobufReader wire = new ProtobufReader();
        wire.reset(TensorProtoCodec.view(message));
        StringInterner names = new StringInterner();
        Kind kind = Kind.NONE;
        ModelSpec model = null;
        double rate = 0;
        long seconds = 0;
        byte[] request = NOTHING;
        byte[] response = null;
        while (wire.hasMore()) {
            int tag = wire.readTag();
            Kind of = Kind.of(tag >>> 3);
            if ((tag & 7) != ProtobufReader.BYTES || of == Kind.NONE && tag >>> 3 != 1) {
                wire.skipField(tag);
                continue;
            }
            int outer = wire.enter();
            if (of == Kind.NONE) {
                while (wire.hasMore()) {
                    int inner = wire.readTag();
                    switch (inner) {
                        case 1 << 3 | ProtobufReader.BYTES -> {
                            int around = wire.enter();
                            model = ModelSpec.read(wire, names, model);
                            wire.leave(around);
                        }
                        case 2 << 3 | ProtobufReader.BYTES -> rate = samplingRate(wire, rate);
                        case 4 << 3 | ProtobufReader.VARINT -> seconds = wire.readVarint();
                        default -> wire.skipField(inner);
                    }
                }
            } else {
                kind = of;
                request = NOTHING;
                response = null;
                while (wire.hasMore()) {
                    int inner = wire.readTag();
                    switch (inner) {
                        case 1 << 3 | ProtobufReader.BYTES -> request = bytes(wire);
                        case 2 << 3 | ProtobufReader.BYTES -> response = bytes(wire);
                        default -> wire.skipField(inner);
                    }
                }
            }
            wire.leave(outer);
        }
        return new PredictionLog(kind, model, rate, seconds, request, response);
    }

    private static double samplingRate(ProtobufReader wire, double before) {
        double rate = before;
        int outer = wire.enter();
        while (wire.hasMore()) {
            int tag = wire.readTag();
            if (tag == (1 << 3 | ProtobufReader.FIXED64)) {
                rate = Double.longBitsToDouble(wire.readFixed64());
            } else {
                wire.skipField(tag);
            }
        }
        wire.leave(outer);
        return rate;
    }

    private static byte[] bytes(ProtobufReader wire) {
        byte[] bytes = new byte[wire.readLength()];
        wire.buffer().get(wire.position(), bytes);
        wire.skip(bytes.length);
        return bytes;
    }

    /** Serializes the log. */
    public byte[] toBytes() {
        ProtobufWriter out = new ProtobufWriter();
        if (model != null) {
            writeHead(out, model, samplingRate, timestampSecs);
        }
        if (kind != Kind.NONE) {
            int log = out.begin(kind.field);
            out.bytesField(1, request);
            if (response != null) {
                out.bytesField(2, response);
            }
            out.end(log);
        }
        return out.toByteArray();
    }

    private static void writeHead(ProtobufWriter out, ModelSpec model, double rate, long seconds) {
        int head = out.begin(1);
        model.write(out, 1);
        if (rate != 0) {
            int sampling = out.begin(2);
            out.doubleField(1, rate);
            out.end(sampling);
        }
        if (seconds != 0) {
            out.varintField(4, seconds);
        }
        out.end(head);
    }

    /**
     * Writes the log of a Predict call. The caller keeps the tensors.
     *
     * @param out the message is appended to it
     * @param asked the model spec of the client's request
     * @param answered the version and signature that responded
     * @param filter the requested outputs; empty for all outputs
     * @param outputs null when the call had no response
     */
    public static void writePredict(
            ProtobufWriter out,
            ModelSpec asked,
            ModelSpec answered,
            List<Tensor> inputs,
            List<String> filter,
            @Nullable List<Tensor> outputs,
            double samplingRate,
            long timestampSecs) {
        writeHead(out, answered, samplingRate, timestampSecs);
        int log = out.begin(Kind.PREDICT.field);
        PredictMessageReader.writeRequest(out, 1, asked, inputs, filter, true);
        if (outputs != null) {
            PredictMessageReader.writeResponse(out, 2, answered, outputs, true);
        }
        out.end(log);
    }

    /**
     * Creates the requests that repeat the logged call on a model: one request, or one for each task of a
     * multi-inference. The logged model name is ignored, the signature is used. The caller owns the requests' inputs.
     *
     * @param metadata the model to call
     * @throws ServingException INVALID_ARGUMENT when the message is malformed or does not fit the model; UNIMPLEMENTED
     *     for kinds that cannot be repeated ("Unsupported log_type for warmup: …"). No tensor is left open then
     */
    public List<InferenceRequest> requests(ModelMetadata metadata) {
        return switch (kind) {
            case NONE -> List.of();
            case PREDICT -> List.of(predict(metadata));
            case CLASSIFY, REGRESS, MULTI_INFERENCE -> examples(metadata);
            case SESSION_RUN, PREDICT_STREAMED ->
                throw ServingException.of(
                        ErrorCode.UNIMPLEMENTED,
                        "Unsupported log_type for warmup: " + kind.fieldName,
                        "log Predict, Classify, Regress or MultiInference calls instead");
        };
    }

    private InferenceRequest predict(ModelMetadata metadata) {
        MemoryRegion region = MemoryRegion.copyOf(request, 0, request.length);
        try {
            PredictMessageReader message = new PredictMessageReader(new ProtobufReader(), new StringInterner());
            message.scanRequest(region);
            ModelSpec spec = message.spec();
            return request(metadata, spec == null ? "" : spec.signature(), message.tensors(), message.filter());
        } finally {
            region.release();
        }
    }

    private static InferenceRequest request(
            ModelMetadata metadata, String signature, List<Tensor> inputs, List<RequestedOutput> outputs) {
        return new InferenceRequest(
                ModelRef.exact(metadata.id().model(), metadata.id().version()),
                "",
                inputs,
                outputs,
                Map.of(),
                Long.MAX_VALUE,
                0,
                InferenceRequest.Options.NONE.withSignature(
                        signature.isEmpty() ? ModelMetadata.DEFAULT_SIGNATURE : signature));
    }

    private List<InferenceRequest> examples(ModelMetadata metadata) {
        ProtobufReader wire = new ProtobufReader();
        StringInterner names = new StringInterner();
        wire.reset(TensorProtoCodec.view(request));
        List<String> signatures = new ArrayList<>();
        ExampleList examples = ExampleList.of(List.of(), null);
        ModelSpec spec = null;
        while (wire.hasMore()) {
            int tag = wire.readTag();
            if ((tag & 7) != ProtobufReader.BYTES || tag >>> 3 > 2) {
                wire.skipField(tag);
                continue;
            }
            int outer = wire.enter();
            if (tag >>> 3 == 2) {
                examples = ExampleList.read(wire);
            } else if (kind == Kind.MULTI_INFERENCE) {
                signatures.add(taskSignature(wire, names));
            } else {
                spec = ModelSpec.read(wire, names, spec);
            }
            wire.leave(outer);
        }
        if (kind != Kind.MULTI_INFERENCE) {
            signatures.add(spec == null ? "" : spec.signature());
        }
        List<InferenceRequest> requests = new ArrayList<>();
        boolean done = false;
        try {
            for (String name : signatures) {
                Signature signature = metadata.signature(name);
                if (signature == null) {
                    throw ServingException.invalidArgument("No signature was found with the name: " + name);
                }
                if (kind != Kind.MULTI_INFERENCE) {
                    ExampleSignatures.check(metadata, signature, kind == Kind.CLASSIFY);
                }
                requests.add(request(metadata, name, ExampleTensors.of(metadata, signature, examples), List.of()));
            }
            done = true;
            return requests;
        } finally {
            if (!done) {
                requests.forEach(InferenceRequest::release);
            }
        }
    }

    private static String taskSignature(ProtobufReader wire, StringInterner names) {
        ModelSpec spec = null;
        while (wire.hasMore()) {
            int tag = wire.readTag();
            if (tag == (1 << 3 | ProtobufReader.BYTES)) {
                int outer = wire.enter();
                spec = ModelSpec.read(wire, names, spec);
                wire.leave(outer);
            } else {
                wire.skipField(tag);
            }
        }
        return spec == null ? "" : spec.signature();
    }

    /** Returns the outputs of a logged Predict response, which the caller owns; empty for every other log. */
    public List<Tensor> outputs() {
        if (kind != Kind.PREDICT || response == null) {
            return List.of();
        }
        MemoryRegion region = MemoryRegion.copyOf(response, 0, response.length);
        try {
            PredictMessageReader message = new PredictMessageReader(new ProtobufReader(), new StringInterner());
            message.scanResponse(region);
            return message.tensors();
        } finally {
            region.release();
        }
    }
}
