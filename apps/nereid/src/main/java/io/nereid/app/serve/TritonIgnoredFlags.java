// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParameterException;

/**
 * The options of {@code tritonserver} that have no counterpart: those that change no answer when they are left out
 * become one line of warning, so that start scripts work; a value that asks for what this server does not do is refused.
 * The options that have a counterpart are in {@link TritonFlags}. Stateless.
 */
public final class TritonIgnoredFlags {
    private static final String GPU = "models run on processors, and no GPU memory is used";
    private static final String GRPC_TUNING = "HTTP/2 keep-alive, connection ages and memory limits are built in";
    private static final String ONE_PORT = "REST and gRPC share a port and are always enabled; leave it out";
    private static final String OWN_PORT = "a port belongs to one process; run replicas on different ports";
    private static final String SAGEMAKER = "SageMaker's endpoints are not supported; leave it out";
    private static final String VERTEX = "Vertex AI's endpoints are not supported; leave it out";

    /** Options that take true or false, by the only value that is supported. */
    private static final Map<String, Switch> SWITCHES = new LinkedHashMap<>();

    /** Options with any value, by the reason why they have no effect. */
    private static final Map<String, String> IGNORED = new LinkedHashMap<>();

    /**
     * An option that takes true or false.
     *
     * @param value the value that describes what this server does, which needs no warning
     * @param refused whether the other value is an error; otherwise it is a warning
     * @param reason why the other value is refused or has no effect
     */
    private record Switch(boolean value, boolean refused, String reason) {}

    static {
        SWITCHES.put("--allow-http", new Switch(true, true, ONE_PORT));
        SWITCHES.put("--allow-grpc", new Switch(true, true, ONE_PORT));
        SWITCHES.put("--reuse-http-port", new Switch(false, true, OWN_PORT));
        SWITCHES.put("--reuse-grpc-port", new Switch(false, true, OWN_PORT));
        SWITCHES.put("--allow-sagemaker", new Switch(false, true, SAGEMAKER));
        SWITCHES.put("--allow-vertex-ai", new Switch(false, true, VERTEX));
        SWITCHES.put("--allow-gpu-metrics", new Switch(false, false, "there are no GPUs to report"));
        SWITCHES.put("--allow-cpu-metrics", new Switch(true, false, "the metrics of processors are always exported"));
        SWITCHES.put("--enable-peer-access", new Switch(false, false, GPU));
        SWITCHES.put(
                "--model-namespacing", new Switch(false, false, "a model's name must be unique over all repositories"));
        for (String name : new String[] {
            "--pinned-memory-pool-byte-size",
            "--cuda-memory-pool-byte-size",
            "--cuda-virtual-address-size",
            "--min-supported-compute-capability",
            "--model-load-gpu-limit"
        }) {
            IGNORED.put(name, GPU);
        }
        IGNORED.put(
                "--backend-directory",
                "backends are built in or plugins (nereid plugins list); libtriton_*.so libraries are not loaded");
        IGNORED.put(
                "--repoagent-directory",
                "the checksum agent is built in; libtritonrepoagent_*.so libraries are not loaded");
        IGNORED.put(
                "--cache-directory",
                "caches are built in (see --cache-config); libtritoncache_*.so libraries are not loaded");
        IGNORED.put("--buffer-manager-thread-count", "inputs are gathered by the thread that runs the model");
        IGNORED.put("--metrics-interval-ms", "metrics are read when they are scraped");
        IGNORED.put("--grpc-infer-thread-count", "all connections share the threads of --io-threads");
        for (String name : new String[] {
            "--grpc-infer-allocation-pool-size",
            "--grpc-max-response-pool-size",
            "--grpc-keepalive-time",
            "--grpc-keepalive-timeout",
            "--grpc-keepalive-permit-without-calls",
            "--grpc-http2-max-pings-without-data",
            "--grpc-http2-min-recv-ping-interval-without-data",
            "--grpc-http2-max-ping-strikes",
            "--grpc-max-connection-age",
            "--grpc-max-connection-age-grace"
        }) {
            IGNORED.put(name, GRPC_TUNING);
        }
        IGNORED.put("--sagemaker-port", SAGEMAKER);
        IGNORED.put("--sagemaker-safe-port-range", SAGEMAKER);
        IGNORED.put("--sagemaker-thread-count", SAGEMAKER);
        IGNORED.put("--vertex-ai-port", VERTEX);
        IGNORED.put("--vertex-ai-thread-count", VERTEX);
        IGNORED.put("--vertex-ai-default-model", VERTEX);
    }

    private TritonIgnoredFlags() {}

    /** Adds the options to the command. */
    public static void addTo(CommandSpec serve) {
        SWITCHES.keySet()
                .forEach(name -> serve.addOption(OptionSpec.builder(name)
                        .type(String.class)
                        .arity("0..1")
                        .fallbackValue("true")
                        .hidden(true)
                        .build()));
        IGNORED.keySet()
                .forEach(name -> serve.addOption(OptionSpec.builder(name)
                        .type(String.class)
                        .arity("1")
                        .hidden(true)
                        .build()));
    }

    /** Whether the option is one of these. */
    static boolean contains(OptionSpec option) {
        return SWITCHES.containsKey(option.longestName()) || IGNORED.containsKey(option.longestName());
    }

    /**
     * Returns a warning for each given option that has no effect.
     *
     * @throws ParameterException for a value that asks for what this server does not do
     */
    static List<String> warnings(CommandSpec serve) {
        List<String> warnings = new ArrayList<>();
        for (OptionSpec option : serve.commandLine().getParseResult().matchedOptions()) {
            String name = option.longestName();
            Switch known = SWITCHES.get(name);
            if (known != null) {
                boolean value = parse(serve, name, option.getValue());
                if (value != known.value()) {
                    if (known.refused()) {
                        throw new ParameterException(
                                serve.commandLine(), name + "=" + value + " is not supported: " + known.reason());
                    }
                    warnings.add(name + "=" + value + " has no effect: " + known.reason());
                }
            } else if (IGNORED.containsKey(name)) {
                warnings.add(name + " has no effect: " + IGNORED.get(name));
            }
        }
        return warnings;
    }

    private static boolean parse(CommandSpec serve, String name, @Nullable String text) {
        Boolean value = text == null ? null : truth(text);
        if (value == null) {
            throw new ParameterException(
                    serve.commandLine(), "invalid value '" + text + "' for " + name + " (expected: true or false)");
        }
        return value;
    }

    /** Reads a truth value in the forms that {@code tritonserver} takes; null for anything else. */
    public static @Nullable Boolean truth(String text) {
        return switch (text.toLowerCase(Locale.ROOT)) {
            case "true", "on", "1" -> Boolean.TRUE;
            case "false", "off", "0" -> Boolean.FALSE;
            default -> null;
        };
    }
}
