// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base.access;

import org.jspecify.annotations.Nullable;

/**
 * What a request does, at the granularity at which access is granted: the {@link Permission} that it needs, and the
 * group of calls that tritonserver's {@code --http-restricted-api} and {@code --grpc-restricted-protocol} name.
 */
public enum Operation implements OperationSelector {
    HEALTH(Permission.HEALTH, "health"),
    METADATA(Permission.METADATA, "metadata"),
    /** Reads the configuration of a model. */
    MODEL_CONFIG(Permission.METADATA, "model-config"),
    /** Lists the models of the repositories. */
    REPOSITORY_INDEX(Permission.METADATA, "model-repository"),
    INFERENCE(Permission.INFER, "inference"),
    /** Loads, unloads or configures models. */
    MODEL_CONTROL(Permission.MANAGE, "model-repository"),
    STATISTICS(Permission.OBSERVE, "statistics"),
    /** Reads trace settings. */
    TRACE(Permission.OBSERVE, "trace"),
    /** Changes trace settings. */
    CONFIGURE_TRACE(Permission.CONFIGURE_OBSERVE, "trace"),
    /** Reads log settings. */
    LOGGING(Permission.OBSERVE, "logging"),
    /** Changes log settings. */
    CONFIGURE_LOGGING(Permission.CONFIGURE_OBSERVE, "logging"),
    /** Reads the live data of the web console. */
    CONSOLE(Permission.CONSOLE, null),
    SHARED_MEMORY(Permission.SHARE_MEMORY, "shared-memory"),
    METRICS(Permission.METRICS, null),
    /** Lists the gRPC services. */
    REFLECTION(Permission.METADATA, "metadata"),
    /** Reads a resource of the control plane. */
    CONTROL_READ(Permission.CONTROL_READ, null),
    /** Writes a resource of the control plane. */
    CONTROL(Permission.CONTROL, null);

    private final Permission permission;
    private final @Nullable String group;

    Operation(Permission permission, @Nullable String group) {
        this.permission = permission;
        this.group = group;
    }

    /** The permission that the operation needs. */
    public Permission permission() {
        return permission;
    }

    /** The name of tritonserver's group of calls; null for an operation that tritonserver does not restrict. */
    public @Nullable String group() {
        return group;
    }

    @Override
    public Operation select(String method, String path) {
        return this;
    }

    /**
     * What a request does that is passed on to another server, by its path: the management calls of the known protocols
     * are recognised wherever they occur, anything else is an inference request. Percent-encoded paths are decoded
     * before the comparison, so that an encoded slash or letter does not hide a call.
     */
    public static Operation ofPath(String method, String path) {
        String p = PathNormalizer.normalize(path);
        if (p.startsWith("/inference.GRPCInferenceService/")) {
            return ofV2Method(p.substring(p.lastIndexOf('/') + 1));
        }
        if (p.startsWith("/tensorflow.serving.")) {
            return p.endsWith("/HandleReloadConfigRequest")
                    ? MODEL_CONTROL
                    : p.endsWith("/GetModelMetadata") || p.endsWith("/GetModelStatus") ? METADATA : INFERENCE;
        }
        if (p.startsWith("/grpc.health.")) {
            return HEALTH;
        }
        if (p.startsWith("/grpc.reflection.")) {
            return REFLECTION;
        }
        boolean read = method.equals("GET") || method.equals("HEAD");
        if (p.contains("sharedmemory")) {
            return SHARED_MEMORY;
        }
        if (p.startsWith("/v2/repository")) {
            return p.endsWith("/index") ? REPOSITORY_INDEX : MODEL_CONTROL;
        }
        if (p.startsWith("/v2/logging")) {
            return read ? LOGGING : CONFIGURE_LOGGING;
        }
        if (p.endsWith("/trace/setting")) {
            return read ? TRACE : CONFIGURE_TRACE;
        }
        if (p.equals("/metrics") || p.endsWith("/prometheus/metrics")) {
            return METRICS;
        }
        if (p.startsWith("/v2/health/") || p.startsWith("/v2/models/") && p.endsWith("/ready")) {
            return HEALTH;
        }
        if (read && p.equals("/openapi.json")) {
            return METADATA;
        }
        if (p.startsWith("/admin/")) {
            return MODEL_CONTROL;
        }
        if (p.startsWith("/v2/models/") && read) {
            return p.endsWith("/stats") || p.endsWith("/requests/slow")
                    ? STATISTICS
                    : p.endsWith("/config") ? MODEL_CONFIG : METADATA;
        }
        return read && (p.startsWith("/v1/models") || p.startsWith("/openai/v1/models") || p.equals("/v2"))
                ? METADATA
                : INFERENCE;
    }

    /** What a method of {@code GRPCInferenceService} does, before its message is known. */
    public static Operation ofV2Method(String method) {
        return switch (method) {
            case "ServerLive", "ServerReady", "ModelReady" -> HEALTH;
            case "ServerMetadata", "ModelMetadata" -> METADATA;
            case "ModelConfig" -> MODEL_CONFIG;
            case "RepositoryIndex" -> REPOSITORY_INDEX;
            case "RepositoryModelLoad", "RepositoryModelUnload" -> MODEL_CONTROL;
            case "ModelStatistics" -> STATISTICS;
            case "TraceSetting" -> TRACE;
            case "LogSettings" -> LOGGING;
            case "ModelInfer", "ModelStreamInfer" -> INFERENCE;
            default -> method.contains("SharedMemory") ? SHARED_MEMORY : MODEL_CONTROL;
        };
    }
}
