// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.grpc;

import io.nereid.base.ErrorCode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.base.access.Permission;
import io.nereid.protobuf.ProtobufReader;
import io.nereid.protobuf.ProtobufWriter;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.Signature;
import io.nereid.spi.config.TensorSpec;
import io.nereid.spi.management.ModelStatus;
import io.nereid.spi.management.VersionLabel;
import io.nereid.spi.management.WeightedVersion;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tfdata.ModelSpec;
import io.nereid.tfdata.TensorProtoCodec;
import io.nereid.tfdata.TfDataType;
import io.nereid.transport.api.GrpcCall;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** Handles GetModelMetadata and GetModelStatus. Thread-safe: immutable. */
final class GrpcModelInfo {
    private static final String SIGNATURES = "signature_def";
    private static final String TYPE_URL = "type.googleapis.com/tensorflow.serving.SignatureDefMap";

    private final GrpcContext context;

    GrpcModelInfo(GrpcContext context) {
        this.context = context;
    }

    /** GetModelMetadata. */
    void metadata(GrpcCall call, MemoryRegion message) {
        GrpcContext.Tools tools = context.tools();
        List<String> fields = new ArrayList<>();
        ModelSpec spec = GrpcContext.required(read(tools, message, fields));
        call.require(Permission.METADATA, spec.ref().model());
        if (fields.isEmpty()) {
            throw ServingException.invalidArgument(
                    "GetModelMetadataRequest must specify at least one metadata_field", "ask for " + SIGNATURES);
        }
        for (String field : fields) {
            if (!field.equals(SIGNATURES)) {
                throw ServingException.invalidArgument(
                        "Metadata field " + field + " is not supported", "ask for " + SIGNATURES);
            }
        }
        ModelMetadata metadata = context.metadata(spec.ref());
        ProtobufWriter out = tools.writer();
        ModelSpec.of(metadata.id().model(), metadata.id().version(), "").write(out, 1);
        int entry = out.begin(2);
        out.textField(1, SIGNATURES);
        int any = out.begin(2);
        out.textField(1, TYPE_URL);
        int map = out.begin(2);
        new TreeMap<>(metadata.signatures())
                .forEach((name, signature) -> writeSignature(out, name, Objects.requireNonNull(signature)));
        out.end(map);
        out.end(any);
        out.end(entry);
        GrpcUnaryHandler.send(call, out);
    }

    private static @Nullable ModelSpec read(GrpcContext.Tools tools, MemoryRegion message, List<String> fields) {
        ProtobufReader wire = tools.wire;
        wire.reset(message.buffer(0, message.size()));
        ModelSpec spec = null;
        while (wire.hasMore()) {
            int tag = wire.readTag();
            switch (tag) {
                case 1 << 3 | ProtobufReader.BYTES -> {
                    int outer = wire.enter();
                    spec = ModelSpec.read(wire, tools.names, spec);
                    wire.leave(outer);
                }
                case 2 << 3 | ProtobufReader.BYTES -> fields.add(wire.readText(tools.names));
                default -> wire.skipField(tag);
            }
        }
        wire.clear();
        return spec;
    }

    private static void writeSignature(ProtobufWriter out, String name, Signature signature) {
        int entry = out.begin(1);
        out.textField(1, name);
        int definition = out.begin(2);
        writeTensors(out, 1, signature, signature.inputs());
        writeTensors(out, 2, signature, signature.outputs());
        out.textField(3, signature.method());
        out.end(definition);
        out.end(entry);
    }

    private static void writeTensors(ProtobufWriter out, int field, Signature signature, List<TensorSpec> specs) {
        List<TensorSpec> sorted = new ArrayList<>(specs);
        sorted.sort(Comparator.comparing(TensorSpec::name));
        for (TensorSpec spec : sorted) {
            int entry = out.begin(field);
            out.textField(1, spec.name());
            int info = out.begin(2);
            out.textField(1, signature.tensors().getOrDefault(spec.name(), spec.name()));
            out.varintField(2, TfDataType.of(spec.dataType()).number());
            if (spec.unchecked() && spec.shape().rank() == 0) {
                int shape = out.begin(3);
                out.varintField(3, 1);
                out.end(shape);
            } else {
                TensorProtoCodec.writeShape(out, 3, spec.shape());
            }
            out.end(info);
            out.end(entry);
        }
    }

    /** GetModelStatus. */
    void status(GrpcCall call, MemoryRegion message) {
        GrpcContext.Tools tools = context.tools();
        ModelSpec spec = GrpcContext.required(read(tools, message, new ArrayList<>()));
        call.require(Permission.METADATA, spec.ref().model());
        List<ServableState> states = states(spec);
        ProtobufWriter out = tools.writer();
        for (ServableState state : states) {
            boolean failed = state.phase() == Phase.FAILED;
            int version = out.begin(1);
            if (state.id().version() != 0) {
                out.varintField(1, state.id().version());
            }
            out.varintField(2, number(state.phase()));
            int status = out.begin(3);
            if (failed) {
                out.varintField(1, ErrorCode.UNKNOWN.number());
            }
            String reason = state.reason();
            out.textField(2, failed && reason != null ? reason : "");
            out.end(status);
            out.end(version);
        }
        GrpcUnaryHandler.send(call, out);
    }

    private List<ServableState> states(ModelSpec spec) {
        ModelStatus status = null;
        List<String> names = new ArrayList<>();
        for (ModelStatus each : context.control.index()) {
            names.add(each.model());
            if (each.model().equals(spec.name())) {
                status = each;
            }
        }
        if (status == null || status.versions().isEmpty()) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "Could not find any versions of model " + spec.name(),
                    status == null ? NameSuggestions.didYouMean(spec.name(), names, "no model has this name") : null);
        }
        List<ServableState> states = new ArrayList<>(status.versions());
        states.sort(Comparator.comparing(ServableState::id).reversed());
        String name = spec.label();
        if (name != null) {
            VersionLabel label = status.labels().get(name);
            if (label == null) {
                throw ServingException.invalidArgument(
                        "Unrecognized servable version label: " + name,
                        NameSuggestions.didYouMean(
                                name,
                                status.labels().keySet(),
                                "labels of model '" + spec.name() + "': "
                                        + status.labels().keySet().stream()
                                                .sorted()
                                                .toList()));
            }
            List<Long> versions =
                    label.targets().stream().map(WeightedVersion::version).toList();
            states.removeIf(state -> !versions.contains(state.id().version()));
            if (states.isEmpty()) {
                throw unknownVersion(versions.get(0), spec.name());
            }
        } else if (spec.version() != ModelRef.ANY) {
            states.removeIf(state -> state.id().version() != spec.version());
            if (states.isEmpty()) {
                throw unknownVersion(spec.version(), spec.name());
            }
        }
        return states;
    }

    private static ServingException unknownVersion(long version, String model) {
        return ServingException.of(ErrorCode.NOT_FOUND, "Could not find version " + version + " of model " + model);
    }

    private static int number(Phase phase) {
        return switch (phase) {
            case TRACKED -> 10;
            case LOADING, WARMING -> 20;
            case AVAILABLE -> 30;
            case DRAINING, UNLOADING -> 40;
            case GONE, FAILED -> 50;
        };
    }
}
