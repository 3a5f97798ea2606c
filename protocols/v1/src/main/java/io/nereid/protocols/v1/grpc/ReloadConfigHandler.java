// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.grpc;

import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.base.access.Permission;
import io.nereid.protobuf.ProtobufReader;
import io.nereid.protobuf.ProtobufWriter;
import io.nereid.protobuf.StringInterner;
import io.nereid.spi.config.VersionPolicy;
import io.nereid.spi.management.LoggingConfig;
import io.nereid.spi.management.ModelListChange;
import io.nereid.spi.management.ModelListEntry;
import io.nereid.spi.management.VersionLabel;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.GrpcCall;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

/** Handles HandleReloadConfigRequest, which replaces the list of served models. Thread-safe: immutable. */
final class ReloadConfigHandler {
    private final GrpcContext context;

    ReloadConfigHandler(GrpcContext context) {
        this.context = context;
    }

    /** Reads the request, applies the new list and answers the call when all models are available or have failed. */
    void reload(GrpcCall call, MemoryRegion message) {
        call.require(Permission.MANAGE, Caller.ALL);
        ProtobufReader wire = new ProtobufReader();
        StringInterner names = context.tools().names;
        wire.reset(message.buffer(0, message.size()));
        List<ModelListEntry> models = null;
        while (wire.hasMore()) {
            int tag = wire.readTag();
            switch (tag) {
                case 1 << 3 | ProtobufReader.BYTES -> {
                    int outer = wire.enter();
                    models = config(wire, names, models);
                    wire.leave(outer);
                }
                case 2 << 3 | ProtobufReader.BYTES -> {
                    String metric = wire.readText(names);
                    throw ServingException.invalidArgument(
                            "the increase of metric '" + metric + "' during a reload cannot be reported",
                            "leave metric_names empty and read the metrics page before and after");
                }
                default -> wire.skipField(tag);
            }
        }
        if (models == null) {
            throw unsupported();
        }
        context.control.configure(models, false).whenComplete((changes, failure) -> {
            ServingException e = failure != null ? cause(failure) : failed(changes);
            if (e != null) {
                call.fail(e);
                return;
            }
            ProtobufWriter out = new ProtobufWriter();
            out.end(out.begin(1));
            GrpcUnaryHandler.send(call, out);
        });
    }

    private static ServingException cause(Throwable t) {
        return ServingException.from(t instanceof CompletionException && t.getCause() != null ? t.getCause() : t);
    }

    /** One error for all models that did not become available; null when all did. */
    private static @Nullable ServingException failed(List<ModelListChange> changes) {
        ServingException first = null;
        StringBuilder texts = new StringBuilder();
        int count = 0;
        for (ModelListChange change : changes) {
            ServingException e = change.error();
            if (e != null) {
                first = first == null ? e : first;
                count++;
                texts.append('{')
                        .append(change.model())
                        .append(" due to error: ")
                        .append(e.describe())
                        .append("}");
            }
        }
        return first == null
                ? null
                : ServingException.of(
                        first.code(),
                        count + " of " + changes.size() + " model(s) did not become available: {" + texts + "}",
                        "the others are served according to the new list");
    }

    private static ServingException unsupported() {
        return ServingException.invalidArgument("ServerModelConfig type not supported by HandleReloadConfigRequest."
                + " Only ModelConfigList is currently supported");
    }

    /** The models of a ModelServerConfig; null when it does not contain a list. */
    private static @Nullable List<ModelListEntry> config(
            ProtobufReader wire, StringInterner names, @Nullable List<ModelListEntry> before) {
        List<ModelListEntry> models = before;
        while (wire.hasMore()) {
            int tag = wire.readTag();
            switch (tag) {
                case 1 << 3 | ProtobufReader.BYTES -> {
                    int outer = wire.enter();
                    models = models == null ? new ArrayList<>() : models;
                    while (wire.hasMore()) {
                        int inner = wire.readTag();
                        if (inner == (1 << 3 | ProtobufReader.BYTES)) {
                            int around = wire.enter();
                            models.add(model(wire, names));
                            wire.leave(around);
                        } else {
                            wire.skipField(inner);
                        }
                    }
                    wire.leave(outer);
                }
                case 2 << 3 | ProtobufReader.BYTES -> throw unsupported();
                default -> wire.skipField(tag);
            }
        }
        return models;
    }

    private static ModelListEntry model(ProtobufReader wire, StringInterner names) {
        String name = "";
        String basePath = "";
        String platform = "";
        long type = 0;
        VersionPolicy policy = null;
        Map<String, VersionLabel> labels = new LinkedHashMap<>();
        LoggingConfig logging = null;
        while (wire.hasMore()) {
            int tag = wire.readTag();
            switch (tag) {
                case 1 << 3 | ProtobufReader.BYTES -> name = wire.readText(names);
                case 2 << 3 | ProtobufReader.BYTES -> basePath = wire.readText(names);
                case 3 << 3 | ProtobufReader.VARINT -> type = wire.readVarint();
                case 4 << 3 | ProtobufReader.BYTES -> platform = wire.readText(names);
                case 6 << 3 | ProtobufReader.BYTES -> {
                    int outer = wire.enter();
                    logging = logging(wire, names);
                    wire.leave(outer);
                }
                case 7 << 3 | ProtobufReader.BYTES -> {
                    int outer = wire.enter();
                    policy = policy(wire, policy);
                    wire.leave(outer);
                }
                case 8 << 3 | ProtobufReader.BYTES -> {
                    int outer = wire.enter();
                    label(wire, names, labels);
                    wire.leave(outer);
                }
                default -> wire.skipField(tag);
            }
        }
        return new ModelListEntry(name, basePath, platform(name, platform, type), policy, labels, logging);
    }

    private static String platform(String model, String platform, long type) {
        if (type == 0) {
            return platform;
        }
        if (!platform.isEmpty()) {
            throw ServingException.invalidArgument(
                    "Illegal setting both ModelServerConfig::model_type (deprecated) and"
                            + " ModelServerConfig::model_platform. model name is " + model,
                    "leave model_type out");
        }
        if (type != 1) {
            throw ServingException.invalidArgument(
                    "Model " + model + " has model_type " + type + ", which is not supported (expected: 1, TENSORFLOW)",
                    "use model_platform instead");
        }
        return "tensorflow";
    }

    private static void label(ProtobufReader wire, StringInterner names, Map<String, VersionLabel> labels) {
        String name = "";
        long version = 0;
        while (wire.hasMore()) {
            int tag = wire.readTag();
            switch (tag) {
                case 1 << 3 | ProtobufReader.BYTES -> name = wire.readText(names);
                case 2 << 3 | ProtobufReader.VARINT -> version = wire.readVarint();
                default -> wire.skipField(tag);
            }
        }
        labels.put(name, VersionLabel.of(version));
    }

    private static @Nullable VersionPolicy policy(ProtobufReader wire, @Nullable VersionPolicy before) {
        VersionPolicy policy = before;
        while (wire.hasMore()) {
            int tag = wire.readTag();
            int field = tag >>> 3;
            if ((tag & 7) != ProtobufReader.BYTES || field < 100 || field > 102) {
                wire.skipField(tag);
                continue;
            }
            int outer = wire.enter();
            policy = switch (field) {
                case 100 -> latest(wire);
                case 101 -> new VersionPolicy(VersionPolicy.Kind.ALL, 0, List.of());
                default -> specific(wire, policy);
            };
            wire.leave(outer);
        }
        return policy;
    }

    private static VersionPolicy latest(ProtobufReader wire) {
        long count = 0;
        while (wire.hasMore()) {
            int tag = wire.readTag();
            if (tag == (1 << 3 | ProtobufReader.VARINT)) {
                count = wire.readVarint() & 0xFFFF_FFFFL;
            } else {
                wire.skipField(tag);
            }
        }
        return new VersionPolicy(
                VersionPolicy.Kind.LATEST, (int) Math.min(Math.max(count, 1), Integer.MAX_VALUE), List.of());
    }

    private static VersionPolicy specific(ProtobufReader wire, @Nullable VersionPolicy before) {
        List<Long> versions = new ArrayList<>(
                before != null && before.kind() == VersionPolicy.Kind.SPECIFIC ? before.versions() : List.of());
        while (wire.hasMore()) {
            int tag = wire.readTag();
            if (tag == (1 << 3 | ProtobufReader.VARINT)) {
                versions.add(wire.readVarint());
            } else if (tag == (1 << 3 | ProtobufReader.BYTES)) {
                int outer = wire.enter();
                while (wire.hasMore()) {
                    versions.add(wire.readVarint());
                }
                wire.leave(outer);
            } else {
                wire.skipField(tag);
            }
        }
        return new VersionPolicy(VersionPolicy.Kind.SPECIFIC, 0, List.copyOf(versions));
    }

    private static LoggingConfig logging(ProtobufReader wire, StringInterner names) {
        String type = "";
        String prefix = "";
        double rate = 0;
        while (wire.hasMore()) {
            int tag = wire.readTag();
            if ((tag & 7) != ProtobufReader.BYTES || tag >>> 3 > 2) {
                wire.skipField(tag);
                continue;
            }
            boolean collector = tag >>> 3 == 1;
            int outer = wire.enter();
            while (wire.hasMore()) {
                int inner = wire.readTag();
                if (collector && inner == (1 << 3 | ProtobufReader.BYTES)) {
                    type = wire.readText(names);
                } else if (collector && inner == (2 << 3 | ProtobufReader.BYTES)) {
                    prefix = wire.readText(names);
                } else if (!collector && inner == (1 << 3 | ProtobufReader.FIXED64)) {
                    rate = Double.longBitsToDouble(wire.readFixed64());
                } else {
                    wire.skipField(inner);
                }
            }
            wire.leave(outer);
        }
        return new LoggingConfig(type, prefix, rate);
    }
}
