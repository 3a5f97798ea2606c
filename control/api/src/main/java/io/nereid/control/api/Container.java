// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A container of Kubernetes. Immutable as long as nobody changes the tree.
 *
 * @param name empty inside a {@code model} block and in the container of an explainer
 * @param image null for none
 * @param command replaces the image's entry point
 * @param args after the command
 * @param workingDir null for the image's own
 * @param env in their order
 * @param ports in their order
 * @param resources requests and limits
 * @param volumeMounts in their order
 * @param readinessProbe null for none
 * @param livenessProbe null for none
 * @param startupProbe null for none
 * @param tree every field as it is written, also those that have no component here
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
        Fields fields = new Fields(container, path);
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

    /** The value of an environment variable that is written out; null when it is not set or comes from elsewhere. */
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
     * @param value null when it comes from elsewhere
     * @param from where it comes from, or null
     */
    public record EnvVar(
            String name, @Nullable String value, @Nullable ValueFrom from) {
        static EnvVar read(ObjectNode tree, String path) {
            Fields fields = new Fields(tree, path);
            Fields from = fields.objectOrNull("valueFrom");
            String value = fields.text("value");
            return new EnvVar(
                    fields.text("name", ""),
                    value == null && from == null ? "" : value,
                    from == null ? null : ValueFrom.read(from));
        }
    }

    /**
     * Where a variable's value comes from.
     *
     * @param kind {@code secretKeyRef}, {@code configMapKeyRef}, {@code fieldRef}, {@code resourceFieldRef} or {@code fileKeyRef}
     * @param name the secret's or map's name; empty for the other kinds
     * @param key the key in it, the path of the field, or the name of the resource
     * @param optional whether it may be missing
     */
    public record ValueFrom(String kind, String name, String key, boolean optional) {
        static ValueFrom read(Fields from) {
            for (String kind :
                    List.of("secretKeyRef", "configMapKeyRef", "fieldRef", "resourceFieldRef", "fileKeyRef")) {
                Fields reference = from.objectOrNull(kind);
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
     * @param protocol {@code TCP} unless it says otherwise
     */
    public record Port(
            @Nullable String name,
            int containerPort,
            String protocol,
            @Nullable Integer hostPort) {
        static Port read(ObjectNode tree, String path) {
            Fields fields = new Fields(tree, path);
            return new Port(
                    fields.text("name"),
                    fields.integer("containerPort", 0),
                    fields.text("protocol", "TCP"),
                    fields.integer("hostPort"));
        }
    }

    /** Quantities by resource, such as {@code cpu} to {@code 500m}; see {@link Quantity}. */
    public record Resources(Map<String, String> limits, Map<String, String> requests) {
        /** None. */
        public static final Resources NONE = new Resources(Map.of(), Map.of());

        static Resources read(Fields fields) {
            return new Resources(fields.quantities("limits"), fields.quantities("requests"));
        }
    }

    /** Where a volume is seen. */
    public record VolumeMount(
            String name, String mountPath, @Nullable String subPath, boolean readOnly) {
        static VolumeMount read(ObjectNode tree, String path) {
            Fields fields = new Fields(tree, path);
            return new VolumeMount(
                    fields.text("name", ""),
                    fields.text("mountPath", ""),
                    fields.text("subPath"),
                    fields.flag("readOnly", false));
        }
    }

    /**
     * How it is asked whether a container is well. One of the four ways is not null.
     *
     * @param httpGet ask for a page
     * @param tcpSocket open a connection to this port: a number or a port's name
     * @param exec run a command
     * @param grpc ask the health service on a port
     * @param initialDelaySeconds after the start
     * @param timeoutSeconds for one answer
     * @param periodSeconds between two questions
     * @param successThreshold answers in a row that make it well
     * @param failureThreshold failures in a row that make it ill
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
            Fields fields = new Fields(tree, path);
            Fields exec = fields.objectOrNull("exec");
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
         * A page to ask for.
         *
         * @param port a number or a port's name
         * @param scheme {@code HTTP} or {@code HTTPS}
         */
        public record HttpGet(String path, String port, String scheme, Map<String, String> headers) {
            static HttpGet read(ObjectNode tree, String path) {
                Fields fields = new Fields(tree, path);
                Map<String, String> headers = new java.util.LinkedHashMap<>();
                fields.list("httpHeaders", Fields::new)
                        .forEach(header -> headers.put(header.text("name", ""), header.text("value", "")));
                String port = fields.scalar("port");
                return new HttpGet(
                        fields.text("path", "/"),
                        port == null ? "" : port,
                        fields.text("scheme", "HTTP"),
                        java.util.Collections.unmodifiableMap(headers));
            }
        }

        /** A health service to ask. */
        public record Grpc(int port, String service) {
            static Grpc read(ObjectNode tree, String path) {
                Fields fields = new Fields(tree, path);
                return new Grpc(fields.integer("port", 0), fields.text("service", ""));
            }
        }
    }
}
