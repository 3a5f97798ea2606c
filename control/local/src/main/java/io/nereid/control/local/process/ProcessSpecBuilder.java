// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.process;

import io.nereid.base.ServingException;
import io.nereid.control.api.CommandLineArguments;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Artifact;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.Workload.Port;
import io.nereid.control.core.Workload.Process;
import io.nereid.control.core.Workload.ProcessContainer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Builds the process specifications of one replica from its containers: command lines with ports, variables and paths
 * filled in. Stateless.
 *
 * <p>Ports: a process learns its port from {@code PORT} or {@code --http_port}. A numeric port of the container's
 * specification is used when it is free. Otherwise, and for every further replica, another port is assigned; only a
 * process that reads it from {@code $(PORT)}, {@code --http_port} or {@code --grpc_port} can listen on that one.
 */
final class ProcessSpecBuilder {
    private static final int DEFAULT_PORT = 8080;
    private static final Pattern REFERENCE = Pattern.compile("\\$\\$|\\$\\(([A-Za-z_][-A-Za-z0-9_.]*)\\)");
    /** Bounds recursive expansion, so that variables that refer to each other end. */
    private static final int DEPTH = 8;

    private static final List<String> INHERITED = List.of(
            "PATH",
            "HOME",
            "USER",
            "LOGNAME",
            "SHELL",
            "LANG",
            "TZ",
            "TMPDIR",
            "LD_LIBRARY_PATH",
            "CUDA_VISIBLE_DEVICES",
            "VIRTUAL_ENV",
            "CONDA_PREFIX",
            "JAVA_HOME",
            "SSL_CERT_FILE",
            "SSL_CERT_DIR",
            "REQUESTS_CA_BUNDLE",
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "NO_PROXY",
            "http_proxy",
            "https_proxy",
            "no_proxy");

    private ProcessSpecBuilder() {}

    /** Whether every replica can be assigned ports of its own. */
    static boolean hasAssignablePorts(Workload workload, Process form) {
        for (int i = 0; i < form.containers().size(); i++) {
            if (!takesAssignedPort(workload, form.containers().get(i), i == 0)) {
                return false;
            }
        }
        return true;
    }

    /** Transformers and explainers always receive {@code --http_port}; predictors only when they mention it. */
    private static boolean takesAssignedPort(Workload workload, ProcessContainer container, boolean main) {
        return (main && workload.component() != Component.PREDICTOR) || readsAssignedPort(container);
    }

    private static boolean readsAssignedPort(ProcessContainer container) {
        List<String> words = new ArrayList<>(container.command());
        words.addAll(container.arguments());
        Map<String, String> options = CommandLineArguments.normalized(words);
        words.addAll(container.environment().values());
        return options.containsKey("http_port")
                || options.containsKey("grpc_port")
                || words.stream().anyMatch(w -> w.contains("$(PORT)") || w.contains("${PORT}") || w.contains("$PORT"));
    }

    /**
     * Builds the specifications of one replica. Takes its ports from the allocator; the caller releases them.
     *
     * @param files the fetched artifacts, in their order
     * @param predictor local address of the predictor, such as {@code 127.0.0.1:4711}; null for a predictor itself
     * @param warnings receives a sentence for each setting that cannot be applied as given
     * @throws ServingException FAILED_PRECONDITION, RESOURCE_EXHAUSTED
     */
    static List<ProcessSpec> build(
            Workload workload,
            Process form,
            List<Path> files,
            @Nullable String predictor,
            Map<String, String> inherited,
            PortAllocator ports,
            List<String> warnings) {
        List<Map<Integer, Integer>> assigned = new ArrayList<>();
        Map<Integer, Integer> moved = new LinkedHashMap<>();
        for (int i = 0; i < form.containers().size(); i++) {
            ProcessContainer container = form.containers().get(i);
            boolean assignable = takesAssignedPort(workload, container, i == 0);
            Map<Integer, Integer> own = assign(container, assignable, ports, warnings);
            assigned.add(own);
            own.forEach((number, port) -> {
                if (!number.equals(port)) {
                    moved.put(number, port);
                }
            });
        }
        List<ProcessSpec> starts = new ArrayList<>();
        for (int i = 0; i < form.containers().size(); i++) {
            boolean main = i == 0;
            starts.add(start(
                    workload,
                    form.containers().get(i),
                    main ? predictor : null,
                    main,
                    form.artifacts(),
                    files,
                    inherited,
                    assigned.get(i),
                    moved));
        }
        return starts;
    }

    private static Map<Integer, Integer> assign(
            ProcessContainer container, boolean assignable, PortAllocator ports, List<String> warnings) {
        Map<Integer, Integer> assigned = new LinkedHashMap<>();
        List<Integer> numbers = container.ports().stream().map(Port::number).toList();
        for (int number : numbers.isEmpty() ? List.of(assignable ? 0 : DEFAULT_PORT) : numbers) {
            if (!assignable && ports.take(number)) {
                assigned.put(number, number);
            } else {
                int port = ports.any();
                assigned.put(number, port);
                if (!assignable) {
                    warnings.add("port " + number + " of container '" + container.name()
                            + "' is taken, and PORT=" + port
                            + " is set instead; let the command take its port from $(PORT)"
                            + " or --http_port=$(PORT)");
                }
            }
        }
        return assigned;
    }

    private static boolean isGrpc(Port port) {
        String name = port.name() == null ? "" : port.name().toLowerCase(Locale.ROOT);
        return name.equals("h2c") || name.equals("grpc") || name.endsWith("-grpc") || name.startsWith("grpc-");
    }

    /** Returns the container's port number for HTTP; -1 when it only has a gRPC port. */
    private static int httpNumber(ProcessContainer container, Map<Integer, Integer> assigned) {
        for (Port p : container.ports()) {
            if (p.name() != null && p.name().startsWith("http")) {
                return p.number();
            }
        }
        for (Port p : container.ports()) {
            if (!isGrpc(p)) {
                return p.number();
            }
        }
        return container.ports().isEmpty() ? assigned.keySet().iterator().next() : -1;
    }

    private static int grpcNumber(ProcessContainer container) {
        return container.ports().stream()
                .filter(ProcessSpecBuilder::isGrpc)
                .map(Port::number)
                .findFirst()
                .orElse(-1);
    }

    private static ProcessSpec start(
            Workload workload,
            ProcessContainer container,
            @Nullable String predictor,
            boolean main,
            List<Artifact> artifacts,
            List<Path> files,
            Map<String, String> inherited,
            Map<Integer, Integer> assigned,
            Map<Integer, Integer> moved) {
        int http = assigned.getOrDefault(httpNumber(container, assigned), 0);
        int grpc = assigned.getOrDefault(grpcNumber(container), 0);
        int port = http == 0 ? grpc : http;
        List<String> arguments = new ArrayList<>(container.arguments());
        List<String> all = new ArrayList<>(container.command());
        all.addAll(arguments);
        Map<String, String> given = CommandLineArguments.normalized(all);
        if (main && workload.component() != Component.PREDICTOR) {
            add(arguments, given, "model_name", workload.modelName());
            if (predictor != null) {
                add(arguments, given, "predictor_host", predictor);
            }
            add(arguments, given, "http_port", String.valueOf(port));
            if (workload.containerConcurrency() > 0) {
                add(arguments, given, "workers", String.valueOf(workload.containerConcurrency()));
            }
        }
        List<String> words = new ArrayList<>(container.command());
        words.addAll(arguments);
        words = new ArrayList<>(CommandLineArguments.with(words, "http_port", String.valueOf(port)));
        if (grpc != 0 || given.containsKey("grpc_port")) {
            int grpcPort = grpc != 0 ? grpc : assigned.getOrDefault(number(given.get("grpc_port")), port);
            words = new ArrayList<>(CommandLineArguments.with(words, "grpc_port", String.valueOf(grpcPort)));
        }
        if (predictor != null && isOwnPredictor(workload, given.get("predictor_host"))) {
            words = new ArrayList<>(CommandLineArguments.with(words, "predictor_host", predictor));
        }
        Map<String, String> environment = new LinkedHashMap<>();
        INHERITED.forEach(name -> {
            String value = inherited.get(name);
            if (value != null) {
                environment.put(name, value);
            }
        });
        inherited.forEach((name, value) -> {
            if (name.startsWith("LC_")) {
                environment.put(name, value);
            }
        });
        environment.put("PYTHONUNBUFFERED", "1");
        environment.put("INFERENCE_SERVICE_NAME", workload.service());
        environment.put("NAMESPACE", workload.namespace());
        environment.put("K_REVISION", workload.revision());
        environment.put("K_SERVICE", workload.service());
        Map<String, String> own = new LinkedHashMap<>(container.environment());
        own.put("PORT", String.valueOf(port));
        if (!files.isEmpty()) {
            own.put("MODEL_DIR", files.get(0).toString());
        }
        own.replaceAll((name, value) -> located(value, artifacts, files, moved));
        if (own.containsKey("STORAGE_URI") && !files.isEmpty()) {
            own.put("STORAGE_URI", files.get(0).toString());
        }
        Map<String, String> expanded = new LinkedHashMap<>();
        Map<String, String> scope = new LinkedHashMap<>(environment);
        scope.putAll(own);
        own.forEach((name, value) -> expanded.put(name, expand(value, scope, DEPTH)));
        environment.putAll(expanded);
        List<String> command = words.stream()
                .map(w -> expand(located(w, artifacts, files, moved), environment, 1))
                .toList();
        String directory = container.workingDirectory();
        return new ProcessSpec(
                container.name(),
                command,
                environment,
                assigned,
                http,
                grpc,
                directory == null ? null : Path.of(located(directory, artifacts, files, Map.of())));
    }

    private static int number(@Nullable String text) {
        try {
            return text == null ? -1 : Integer.parseInt(text);
        } catch (NumberFormatException e) {
            return -1;
        }
    }

    private static void add(List<String> arguments, Map<String, String> given, String option, String value) {
        if (!given.containsKey(option)) {
            arguments.add("--" + option);
            arguments.add(value);
        }
    }

    /** Whether a host is the cluster-internal name of this service's predictor, which a local address replaces here. */
    private static boolean isOwnPredictor(Workload workload, @Nullable String host) {
        return host != null
                && host.matches(Pattern.quote(workload.service()) + "(-[-a-z0-9]*)?predictor(\\."
                        + Pattern.quote(workload.namespace()) + "(\\.svc(\\.cluster\\.local)?)?)?(:\\d+)?");
    }

    /**
     * Replaces mount paths by the real directories, and localhost ports of the replica's other containers by the ports
     * that were assigned in their place.
     */
    private static String located(
            String text, List<Artifact> artifacts, List<Path> files, Map<Integer, Integer> moved) {
        String result = text;
        for (int i = 0; i < artifacts.size() && i < files.size(); i++) {
            String mount = artifacts.get(i).mountPath();
            result = Pattern.compile("(?<![-\\w./])" + Pattern.quote(mount) + "(?![-\\w.])")
                    .matcher(result)
                    .replaceAll(Matcher.quoteReplacement(files.get(i).toString()));
        }
        for (Map.Entry<Integer, Integer> m : moved.entrySet()) {
            result = Pattern.compile("(localhost|127\\.0\\.0\\.1):" + m.getKey() + "(?!\\d)")
                    .matcher(result)
                    .replaceAll("$1:" + m.getValue());
        }
        return result;
    }

    /**
     * Expands variables as Kubernetes does: {@code $(NAME)} to the variable's value, {@code $$(NAME)} to
     * {@code $(NAME)}; unknown names stay unchanged. A value is expanded recursively up to the depth.
     */
    static String expand(String text, Map<String, String> variables, int depth) {
        Matcher m = REFERENCE.matcher(text);
        StringBuilder b = new StringBuilder();
        while (m.find()) {
            String name = m.group(1);
            String value;
            if (name == null) {
                value = "$";
            } else if (variables.containsKey(name)) {
                String found = variables.getOrDefault(name, "");
                value = depth > 1 ? expand(found, variables, depth - 1) : found;
            } else {
                value = m.group();
            }
            m.appendReplacement(b, Matcher.quoteReplacement(value));
        }
        return m.appendTail(b).toString();
    }
}
