// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import io.nereid.base.ServingException;
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
 * What the containers of one replica become on this machine: commands with their ports, variables and paths put in. Stateless.
 *
 * <p>Ports: {@code PORT} and {@code --http_port} tell a process where to listen. A port that its specification names as a
 * number is used when it is free; else, and for every further replica, another one is told, which only a process that takes it
 * from {@code $(PORT)}, {@code --http_port} or {@code --grpc_port} can follow.
 */
final class ProcessForm {
    private static final int DEFAULT_PORT = 8080;
    private static final Pattern REFERENCE = Pattern.compile("\\$\\$|\\$\\(([A-Za-z_][-A-Za-z0-9_.]*)\\)");
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

    private ProcessForm() {}

    /**
     * A process to start.
     *
     * @param container its container's name
     * @param command program and arguments
     * @param environment all its variables
     * @param ports where it listens, by the number that the specification gives
     * @param http where it answers HTTP; 0 for nowhere
     * @param grpc where it answers gRPC; 0 for nowhere
     * @param workingDirectory null for a directory of its own
     */
    record Start(
            String container,
            List<String> command,
            Map<String, String> environment,
            Map<Integer, Integer> ports,
            int http,
            int grpc,
            @Nullable Path workingDirectory) {}

    /** Whether every replica can be told a port of its own. */
    static boolean portsCanBeTold(Workload workload, Process form) {
        for (int i = 0; i < form.containers().size(); i++) {
            if (!told(workload, form.containers().get(i), i == 0)) {
                return false;
            }
        }
        return true;
    }

    /** Transformers and explainers are told by the arguments that they are given. */
    private static boolean told(Workload workload, ProcessContainer container, boolean main) {
        return (main && workload.component() != Component.PREDICTOR) || portCanBeTold(container);
    }

    private static boolean portCanBeTold(ProcessContainer container) {
        List<String> words = new ArrayList<>(container.command());
        words.addAll(container.arguments());
        Map<String, String> options = Options.read(words);
        words.addAll(container.environment().values());
        return options.containsKey("http_port")
                || options.containsKey("grpc_port")
                || words.stream().anyMatch(w -> w.contains("$(PORT)") || w.contains("${PORT}") || w.contains("$PORT"));
    }

    /**
     * What one replica is. Takes its ports, which the caller releases.
     *
     * @param files the fetched artifacts, in their order
     * @param predictor where the predictor's door is, such as {@code 127.0.0.1:4711}; null when there is none to call
     * @param warnings gets a sentence for each thing that may not be as expected
     * @throws ServingException FAILED_PRECONDITION, RESOURCE_EXHAUSTED
     */
    static List<Start> starts(
            Workload workload,
            Process form,
            List<Path> files,
            @Nullable String predictor,
            Map<String, String> inherited,
            Ports ports,
            List<String> warnings) {
        List<Map<Integer, Integer>> assigned = new ArrayList<>();
        Map<Integer, Integer> moved = new LinkedHashMap<>();
        for (int i = 0; i < form.containers().size(); i++) {
            ProcessContainer container = form.containers().get(i);
            Map<Integer, Integer> own = assign(container, told(workload, container, i == 0), ports, warnings);
            assigned.add(own);
            own.forEach((number, port) -> {
                if (!number.equals(port)) {
                    moved.put(number, port);
                }
            });
        }
        List<Start> starts = new ArrayList<>();
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
            ProcessContainer container, boolean told, Ports ports, List<String> warnings) {
        Map<Integer, Integer> assigned = new LinkedHashMap<>();
        List<Integer> numbers = container.ports().stream().map(Port::number).toList();
        for (int number : numbers.isEmpty() ? List.of(told ? 0 : DEFAULT_PORT) : numbers) {
            if (!told && ports.take(number)) {
                assigned.put(number, number);
            } else {
                int port = ports.any();
                assigned.put(number, port);
                if (!told) {
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

    /** The number of the port for HTTP; -1 when the container has only one for gRPC. */
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
                .filter(ProcessForm::isGrpc)
                .map(Port::number)
                .findFirst()
                .orElse(-1);
    }

    private static Start start(
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
        Map<String, String> given = Options.read(all);
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
        words = new ArrayList<>(Options.with(words, "http_port", String.valueOf(port)));
        if (grpc != 0 || given.containsKey("grpc_port")) {
            int told = grpc != 0 ? grpc : assigned.getOrDefault(number(given.get("grpc_port")), port);
            words = new ArrayList<>(Options.with(words, "grpc_port", String.valueOf(told)));
        }
        if (predictor != null && isOwnPredictor(workload, given.get("predictor_host"))) {
            words = new ArrayList<>(Options.with(words, "predictor_host", predictor));
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
        return new Start(
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

    /** Whether a host is the cluster's name for the predictor of the same service, which has a door here instead. */
    private static boolean isOwnPredictor(Workload workload, @Nullable String host) {
        return host != null
                && host.matches(Pattern.quote(workload.service()) + "(-[-a-z0-9]*)?predictor(\\."
                        + Pattern.quote(workload.namespace()) + "(\\.svc(\\.cluster\\.local)?)?)?(:\\d+)?");
    }

    /** A text with the real directories for mount paths, and the real ports for those of neighbours that were moved. */
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

    /** {@code $(NAME)} replaced by the variable, {@code $$(NAME)} by {@code $(NAME)}; unknown names stay as they are. */
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
