// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.local;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.CommandLineArguments;
import io.nereid.control.api.Container;
import io.nereid.control.api.Container.EnvVar;
import io.nereid.control.api.Container.ValueFrom;
import io.nereid.control.api.InferenceService;
import io.nereid.control.core.Workload.EnvironmentSource;
import io.nereid.control.core.Workload.Port;
import io.nereid.control.core.Workload.ProcessContainer;
import io.nereid.control.core.component.ComponentPlanner;
import io.nereid.control.core.component.NvidiaResources;
import io.nereid.control.core.component.PlanningContext;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Plans containers as processes of this server, and warns about their fields that have no effect on one machine.
 * Confined to one call of the planner.
 */
public final class ProcessForms {
    /**
     * Fields of containers that need no warning: they apply to processes as well, or are meaningless without a
     * container.
     */
    private static final Set<String> QUIET = Set.of(
            "name",
            "image",
            "command",
            "args",
            "env",
            "resources",
            "ports",
            "imagePullPolicy",
            "terminationMessagePath",
            "terminationMessagePolicy",
            "stdin",
            "stdinOnce",
            "tty");

    private static final Set<String> OF_PROCESSES =
            Set.of("envFrom", "workingDir", "readinessProbe", "livenessProbe", "startupProbe");

    private final PlanningContext context;
    private final String component;

    ProcessForms(PlanningContext context, String component) {
        this.context = context;
        this.component = component;
    }

    /** Warns about fields that have no effect on a model in the engine, or on a process. */
    void advise(ObjectNode container, String where, boolean process) {
        container.properties().forEach(entry -> {
            String field = entry.getKey();
            if (QUIET.contains(field) || ComponentPlanner.isOfModel(field) || isEmpty(entry.getValue())) {
                return;
            }
            if (process && OF_PROCESSES.contains(field)) {
                return;
            }
            String why;
            if (field.endsWith("Probe")) {
                why = "models in the engine are ready when they are loaded";
            } else if (field.startsWith("volume")) {
                why = "there are no volumes; give storageUris, or paths of this machine";
            } else {
                why = process ? "containers with a command are processes of this server" : "the engine runs the model";
            }
            context.advice.add(where + "." + field + " has no effect on one machine: " + why);
        });
    }

    public static boolean isEmpty(JsonNode value) {
        return value.isNull() || (value.isContainerNode() && value.isEmpty());
    }

    /**
     * Plans a container as a process.
     *
     * @param more arguments to append unless the container sets them itself
     * @throws ServingException INVALID_ARGUMENT when the container has an image but no command
     */
    ProcessContainer process(Container container, String where, Map<String, String> more) {
        if (container.command().isEmpty()) {
            throw ServingException.invalidArgument(withoutCommand(container, where));
        }
        Map<String, String> environment = new LinkedHashMap<>();
        List<EnvironmentSource> sources = new ArrayList<>();
        environment.put("INFERENCE_SERVICE_NAME", context.name());
        environment(container, where, environment, sources);
        List<String> args = new ArrayList<>(container.args());
        Set<String> given = new java.util.HashSet<>(
                CommandLineArguments.of(container.args()).keySet());
        given.addAll(CommandLineArguments.of(container.command()).keySet());
        more.forEach((name, value) -> {
            if (!given.contains(name)) {
                args.add("--" + name);
                args.add(value);
            }
        });
        List<Port> ports = new ArrayList<>();
        container.ports().forEach(port -> ports.add(new Port(port.name(), port.containerPort())));
        ObjectNode tree = container.tree();
        NvidiaResources unused = NvidiaResources.of(tree.path("resources"), where);
        return new ProcessContainer(
                container.name().isEmpty() ? InferenceService.MAIN_CONTAINER : container.name(),
                container.command(),
                List.copyOf(args),
                Collections.unmodifiableMap(environment),
                List.copyOf(sources),
                container.workingDir(),
                List.copyOf(ports),
                probe(tree, "readinessProbe"),
                probe(tree, "livenessProbe"),
                probe(tree, "startupProbe"),
                tree.path("resources").isObject() ? tree.path("resources") : tree.objectNode());
    }

    private static @Nullable JsonNode probe(JsonNode container, String name) {
        JsonNode found = container.get(name);
        return found == null || found.isNull() ? null : found;
    }

    private static String withoutCommand(Container container, String where) {
        String image = container.image();
        return where + ": the container \"" + container.name() + "\" has "
                + (image == null || image.isEmpty()
                        ? "neither an image nor a command"
                        : "the image \"" + image + "\" only")
                + "; images are not run on one machine. Give it a command, and it runs as a process of this server; or"
                + " give a model, which a built-in runtime runs";
    }

    /**
     * Adds the variables with literal values to {@code environment}, and references to secrets and config maps to
     * {@code sources}.
     */
    void environment(
            Container container, String where, Map<String, String> environment, List<EnvironmentSource> sources) {
        for (JsonNode from : container.tree().path("envFrom")) {
            String prefix = from.path("prefix").asText("");
            for (String kind : List.of("secretRef", "configMapRef")) {
                JsonNode reference = from.path(kind);
                if (reference.isObject()) {
                    sources.add(new EnvironmentSource(
                            prefix,
                            kind.equals("secretRef") ? "Secret" : "ConfigMap",
                            reference.path("name").asText(),
                            null,
                            reference.path("optional").asBoolean()));
                }
            }
        }
        for (EnvVar one : container.env()) {
            ValueFrom from = one.from();
            if (from == null) {
                String value = one.value();
                environment.put(one.name(), value == null ? "" : value);
                continue;
            }
            environment.remove(one.name());
            switch (from.kind()) {
                case "secretKeyRef" ->
                    sources.add(new EnvironmentSource(one.name(), "Secret", from.name(), from.key(), from.optional()));
                case "configMapKeyRef" ->
                    sources.add(
                            new EnvironmentSource(one.name(), "ConfigMap", from.name(), from.key(), from.optional()));
                case "fieldRef" -> {
                    String value = field(from.key());
                    if (value != null) {
                        environment.put(one.name(), value);
                    } else {
                        advise(one.name(), where, "the field " + from.key() + " is not available on one machine");
                    }
                }
                case "resourceFieldRef" -> {
                    JsonNode value = container
                            .tree()
                            .path("resources")
                            .at("/" + from.key().replace('.', '/'));
                    if (value.isValueNode()) {
                        environment.put(one.name(), units(from.key(), value.asText()));
                    } else {
                        advise(one.name(), where, "the container has no " + from.key());
                    }
                }
                default -> advise(one.name(), where, "variables cannot come from " + from.kind());
            }
        }
    }

    private void advise(String variable, String where, String why) {
        context.advice.add(where + ".env: " + variable + " is not set: " + why);
    }

    private static String units(String resource, String quantity) {
        try {
            return Long.toString(io.nereid.control.api.Quantity.parse(quantity).units());
        } catch (ServingException e) {
            throw ServingException.invalidArgument("resources." + resource + ": " + e.getMessage());
        }
    }

    /**
     * The value of Kubernetes' downward API for a field of the pod; null for fields that do not exist on one machine.
     */
    private @Nullable String field(String path) {
        if (path.startsWith("metadata.labels['") && path.endsWith("']")) {
            String key = path.substring(17, path.length() - 2);
            return context.labels(Map.of(), Map.of(), component).get(key);
        }
        if (path.startsWith("metadata.annotations['") && path.endsWith("']")) {
            return context.annotation(path.substring(22, path.length() - 2));
        }
        return switch (path) {
            case "metadata.namespace" -> context.namespace();
            case "metadata.name" -> context.name() + "-" + component;
            case "status.podIP", "status.hostIP" -> "127.0.0.1";
            case "spec.nodeName" -> "localhost";
            case "spec.serviceAccountName" -> "default";
            default -> null;
        };
    }
}
