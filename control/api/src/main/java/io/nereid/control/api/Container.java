// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A container of a pod, as in Kubernetes' {@code core/v1}. Immutable as long as the JSON tree is not modified.
 *
 * @param name empty inside a {@code model} block and in the container of an explainer
 * @param image null for none
 * @param command replaces the image's entry point
 * @param args the arguments after the command
 * @param workingDir null for the image's own
 * @param env environment variables in their order
 * @param ports ports in their order
 * @param resources requests and limits
 * @param volumeMounts volume mounts in their order
 * @param readinessProbe null for none
 * @param livenessProbe null for none
 * @param startupProbe null for none
 * @param tree all fields as submitted, including those without a record component
 */
public record Container(
        String name,
        @Nullable String image,
        List<String> command,
        List<String> args,
        @Nullable String workingDir,
        List<EnvVar> env,
        List<Port> ports,
        Resources resources,
        List<VolumeMount> volumeMounts,
        @Nullable Probe readinessProbe,
        @Nullable Probe livenessProbe,
        @Nullable Probe startupProbe,
        ObjectNode tree) {

    /**
     * Reads a container.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a value of a wrong type
     */
    public static Container read(ObjectNode container) {
        return read(container, "");
    }

    static Container read(ObjectNode container, String path) {
        FieldReader fields = new FieldReader(container, path);
        return new Container(
                fields.text("name", ""),
                fields.text("image"),
                fields.texts("command"),
                fields.texts("args"),
                fields.text("workingDir"),
                fields.list("env", EnvVar::read),
                fields.list("ports", Port::read),
                Resources.read(fields.object("resources")),
                fields.list("volumeMounts", VolumeMount::read),
                fields.read("readinessProbe", Probe::read),
                fields.read("livenessProbe", Probe::read),
                fields.read("startupProbe", Probe::read),
                container);
    }

    /**
     * The literal value of an environment variable; null when it is not set or comes from a reference. As in
     * Kubernetes, the last entry with a name wins.
     */
    public @Nullable String env(String variable) {
        String found = null;
        for (EnvVar one : env) {
            if (one.name().equals(variable)) {
                found = one.value();
            }
        }
        return found;
    }

    /**
     * An environment variable.
     *
     * @param value the literal value; null when it comes from a reference
     * @param from the reference, or null
     */
    public record EnvVar(
            String name, @Nullable String value, @Nullable ValueFrom from) {
        static EnvVar read(ObjectNode tree, String path) {
            FieldReader fields = new FieldReader(tree, path);
            FieldReader from = fields.objectOrNull("valueFrom");
            String value = fields.text("value");
            return new EnvVar(
                    fields.text("name", ""),
                    value == null && from == null ? "" : value,
                    from == null ? null : ValueFrom.read(from));
        }
    }

    /**
     * The reference that an environment variable's value comes from.
     *
     * @param kind {@code secretKeyRef}, {@code configMapKeyRef}, {@code fieldRef}, {@code resourceFieldRef} or {@code
     *     fileKeyRef}
     * @param name the secret's or map's name; empty for the other kinds
     * @param key the key in it, the path of the field, or the name of the resource
     * @param optional whether it may be missing
     */
    public record ValueFrom(String kind, String name, String key, boolean optional) {
        static ValueFrom read(FieldReader from) {
            for (String kind :
                    List.of("secretKeyRef", "configMapKeyRef", "fieldRef", "resourceFieldRef", "fileKeyRef")) {
                FieldReader reference = from.objectOrNull(kind);
                if (reference != null) {
                    String key = reference.text("key");
                    if (key == null) {
                        key = reference.text("fieldPath", reference.text("resource", ""));
                    }
                    return new ValueFrom(kind, reference.text("name", ""), key, reference.flag("optional", false));
                }
            }
            return new ValueFrom("", "", "", false);
        }
    }

    /**
     * A port.
     *
     * @param name null for none
     * @param protocol {@code TCP} by default
     */
    public record Port(
            @Nullable String name,
            int containerPort,
            String protocol,
            @Nullable Integer hostPort) {
        static Port read(ObjectNode tree, String path) {
            FieldReader fields = new FieldReader(tree, path);
            return new Port(
                    fields.text("name"),
                    fields.integer("containerPort", 0),
                    fields.text("protocol", "TCP"),
                    fields.integer("hostPort"));
        }
    }

    /** Quantities by resource, such as {@code cpu} to {@code 500m}; see {@link Quantity}. */
    public record Resources(Map<String, String> limits, Map<String, String> requests) {
        /** No limits and no requests. */
        public static final Resources NONE = new Resources(Map.of(), Map.of());

        static Resources read(FieldReader fields) {
            return new Resources(fields.quantities("limits"), fields.quantities("requests"));
        }
    }

    /** The mount of a volume in the container. */
    public record VolumeMount(
            String name, String mountPath, @Nullable String subPath, boolean readOnly) {
        static VolumeMount read(ObjectNode tree, String path) {
            FieldReader fields = new FieldReader(tree, path);
            return new VolumeMount(
                    fields.text("name", ""),
                    fields.text("mountPath", ""),
                    fields.text("subPath"),
                    fields.flag("readOnly", false));
        }
    }

    /**
     * A health probe. Exactly one of the four actions is not null in a valid probe.
     *
     * @param httpGet send a GET request
     * @param tcpSocket open a connection to this port: a number or a port's name
     * @param exec run a command
     * @param grpc call the gRPC health service on a port
     * @param initialDelaySeconds delay after the start
     * @param timeoutSeconds timeout of one attempt
     * @param periodSeconds time between two attempts
     * @param successThreshold consecutive successes after which the container is healthy
     * @param failureThreshold consecutive failures after which the container is unhealthy
     */
    public record Probe(
            @Nullable HttpGet httpGet,
            @Nullable String tcpSocket,
            @Nullable List<String> exec,
            @Nullable Grpc grpc,
            int initialDelaySeconds,
            int timeoutSeconds,
            int periodSeconds,
            int successThreshold,
            int failureThreshold) {
        static Probe read(ObjectNode tree, String path) {
            FieldReader fields = new FieldReader(tree, path);
            FieldReader exec = fields.objectOrNull("exec");
            return new Probe(
                    fields.read("httpGet", HttpGet::read),
                    fields.object("tcpSocket").scalar("port"),
                    exec == null ? null : exec.texts("command"),
                    fields.read("grpc", Grpc::read),
                    fields.integer("initialDelaySeconds", 0),
                    fields.integer("timeoutSeconds", 1),
                    fields.integer("periodSeconds", 10),
                    fields.integer("successThreshold", 1),
                    fields.integer("failureThreshold", 3));
        }

        /** Reads a probe, such as a container's {@code readinessProbe}. */
        public static Probe read(ObjectNode probe) {
            return read(probe, "");
        }

        /**
         * The GET request of a probe.
         *
         * @param port a number or a port's name
         * @param scheme {@code HTTP} or {@code HTTPS}
         */
        public record HttpGet(String path, String port, String scheme, Map<String, String> headers) {
            static HttpGet read(ObjectNode tree, String path) {
                FieldReader fields = new FieldReader(tree, path);
                Map<String, String> headers = new java.util.LinkedHashMap<>();
                fields.list("httpHeaders", FieldReader::new)
                        .forEach(header -> headers.put(header.text("name", ""), header.text("value", "")));
                String port = fields.scalar("port");
                return new HttpGet(
                        fields.text("path", "/"),
                        port == null ? "" : port,
                        fields.text("scheme", "HTTP"),
                        java.util.Collections.unmodifiableMap(headers));
            }
        }

        /** The gRPC health service of a probe. */
        public record Grpc(int port, String service) {
            static Grpc read(ObjectNode tree, String path) {
                FieldReader fields = new FieldReader(tree, path);
                return new Grpc(fields.integer("port", 0), fields.text("service", ""));
            }
        }
    }
}
