// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import io.nereid.app.device.DeviceFlags;
import io.nereid.app.process.Logging;
import io.nereid.base.ServingException;
import io.nereid.engine.options.CacheOptions;
import io.nereid.engine.options.DelayOptions;
import io.nereid.engine.options.EngineOptions;
import io.nereid.engine.options.MetricsOptions;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.scheduling.execution.RateLimiter;
import io.nereid.tracing.TraceOptions;
import java.lang.reflect.Field;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.TypeConversionException;

/**
 * The options of {@code tritonserver} that this server supports, under the same names. The others are in
 * {@link IgnoredFlags}. Set by picocli, then only read.
 */
@SuppressWarnings("NullAway.Init") // options are set by picocli
final class TritonFlags {
    enum RateLimit {
        off,
        execution_count
    }

    enum CompressionLevel {
        none,
        low,
        medium,
        high
    }

    /** Reads {@code --log-verbose}, which may also be true or false. */
    static final class VerbosityConverter implements ITypeConverter<Integer> {
        @Override
        public Integer convert(String text) {
            try {
                return Boolean.parseBoolean(text) ? 1 : text.equalsIgnoreCase("false") ? 0 : Integer.parseInt(text);
            } catch (NumberFormatException e) {
                throw new TypeConversionException("'" + text + "' is not a whole number, true or false");
            }
        }
    }

    @Option(names = "--id", paramLabel = "NAME", description = "The server's name in its metadata.")
    String id;

    @Option(names = "--model-store", hidden = true, paramLabel = "DIR")
    List<Path> modelStore = new ArrayList<>();

    @Option(
            names = "--exit-on-error",
            arity = "0..1",
            fallbackValue = "true",
            paramLabel = "true|false",
            description = "Exit with code 1 when a model cannot be loaded at startup (default: false). When it is given"
                    + " as false, the server also starts without a repository that does not exist, and is not ready.")
    @Nullable Boolean exitOnError;

    /** Whether the command line asks to serve although a model cannot be loaded. */
    boolean keepsServing() {
        return Boolean.FALSE.equals(exitOnError);
    }

    @Option(names = "--exit-timeout-secs", paramLabel = "N", description = "The same as --drain-timeout, in seconds.")
    Integer exitTimeoutSecs;

    @Option(
            names = "--strict-readiness",
            arity = "0..1",
            fallbackValue = "true",
            defaultValue = "true",
            paramLabel = "true|false",
            description = "Report the server as ready only when every model is (default: true).")
    boolean strictReadiness;

    @Option(
            names = "--disable-auto-complete-config",
            arity = "0..1",
            fallbackValue = "true",
            defaultValue = "false",
            description = "Reject incomplete model configurations instead of completing them.")
    boolean disableAutoComplete;

    @Option(names = "--strict-model-config", arity = "0..1", fallbackValue = "true", hidden = true)
    Boolean strictModelConfig;

    @Option(
            names = "--repository-poll-secs",
            paramLabel = "N",
            description = "The same as --poll-interval, in seconds.")
    Integer repositoryPollSecs;

    @Option(
            names = "--model-config-name",
            paramLabel = "NAME",
            defaultValue = "",
            description = "Use <model>/configs/NAME.pbtxt instead of config.pbtxt where it exists.")
    String modelConfigName;

    @Option(names = "--model-load-thread-count", paramLabel = "N", description = "The same as --load-threads.")
    Integer modelLoadThreadCount;

    @Option(
            names = "--model-load-retry-count",
            paramLabel = "N",
            defaultValue = "0",
            description = "Number of retries of a failed load, each after a second (default: ${DEFAULT-VALUE}).")
    int modelLoadRetryCount;

    @Option(
            names = "--allow-client-shm",
            arity = "0..1",
            fallbackValue = "true",
            defaultValue = "false",
            paramLabel = "true|false",
            description = "Allow clients on this machine to pass tensors in shared memory (default: false).")
    boolean allowClientShm;

    @Option(
            names = "--client-shm-keys",
            split = ",",
            paramLabel = "PATTERN",
            defaultValue = "*",
            description = "Pattern of the allowed shared memory keys; * matches anything (default: ${DEFAULT-VALUE}).")
    List<String> clientShmKeys = List.of("*");

    @Option(
            names = "--cache-config",
            paramLabel = "NAME,KEY=VALUE",
            description = "Cache for responses of models with response_cache: local,size=BYTES, or redis,host=HOST and"
                    + " redis,port=PORT; may be repeated.")
    List<String> cacheConfig = new ArrayList<>();

    @Option(names = "--response-cache-byte-size", hidden = true)
    Long responseCacheByteSize;

    @Option(
            names = "--rate-limit",
            defaultValue = "off",
            description = "off, or execution_count: schedule instances by their resources (default: ${DEFAULT-VALUE}).")
    RateLimit rateLimit;

    @Option(
            names = "--rate-limit-resource",
            paramLabel = "NAME:COUNT[:DEVICE]",
            description = "Available amount of a rate limiter resource; may be repeated.")
    List<String> rateLimitResource = new ArrayList<>();

    @Option(
            names = "--host-policy",
            paramLabel = "NAME,cpu-cores=A-B",
            description = "CPUs of instance groups with this host policy; may be repeated.")
    List<String> hostPolicy = new ArrayList<>();

    @Option(
            names = {"--http-address", "--grpc-address", "--metrics-address"},
            paramLabel = "HOST",
            description = "The same as --host.")
    String address;

    @Option(names = "--http-port", paramLabel = "PORT", description = "The same as --port.")
    Integer httpPort;

    @Option(names = "--http-thread-count", paramLabel = "N", description = "The same as --io-threads.")
    Integer httpThreadCount;

    @Option(names = "--http-max-input-size", paramLabel = "BYTES", description = "The same as --max-request-bytes.")
    Long httpMaxInputSize;

    @Option(
            names = "--http-header-forward-pattern",
            paramLabel = "REGEX",
            defaultValue = "",
            description = "HTTP headers that become parameters of the request.")
    String httpHeaderForwardPattern;

    @Option(
            names = "--grpc-header-forward-pattern",
            paramLabel = "REGEX",
            defaultValue = "",
            description = "gRPC metadata that become parameters of the request.")
    String grpcHeaderForwardPattern;

    @Option(
            names = "--http-restricted-api",
            paramLabel = "API,…:HEADER=VALUE",
            description = "Groups of REST calls that require a header; may be repeated.")
    List<String> httpRestrictedApi = new ArrayList<>();

    @Option(
            names = "--grpc-restricted-protocol",
            paramLabel = "API,…:KEY=VALUE",
            description = "Groups of gRPC calls that require metadata triton-grpc-protocol-KEY; may be repeated.")
    List<String> grpcRestrictedProtocol = new ArrayList<>();

    @Option(
            names = "--allow-metrics",
            arity = "0..1",
            fallbackValue = "true",
            defaultValue = "true",
            paramLabel = "true|false",
            description = "Serve metrics on /metrics (default: true).")
    boolean allowMetrics;

    @Option(
            names = "--grpc-infer-response-compression-level",
            paramLabel = "none|low|medium|high",
            defaultValue = "none",
            description = "Compress gRPC responses for clients that accept gzip, unless none (default: none).")
    CompressionLevel grpcCompression;

    @Option(
            names = "--metrics-config",
            paramLabel = "[FAMILY,]KEY=VALUE",
            description = "counter_latencies, histogram_latencies, summary_latencies (true or false),"
                    + " summary_quantiles (0.5:0.05,0.9:0.01); may be repeated.")
    List<String> metricsConfig = new ArrayList<>();

    @Option(
            names = "--log-verbose",
            paramLabel = "N",
            converter = VerbosityConverter.class,
            description = "Verbosity: 0, 1 or 2.")
    Integer logVerbose;

    @Option(names = "--log-info", arity = "0..1", fallbackValue = "true", paramLabel = "true|false", hidden = true)
    Boolean logInfo;

    @Option(names = "--log-warning", arity = "0..1", fallbackValue = "true", paramLabel = "true|false", hidden = true)
    Boolean logWarning;

    @Option(names = "--log-error", arity = "0..1", fallbackValue = "true", paramLabel = "true|false", hidden = true)
    Boolean logError;

    @Option(names = "--log-file", paramLabel = "FILE", description = "Log to a file instead of standard error.")
    Path logFile;

    @Option(
            names = "--trace-config",
            paramLabel = "[MODE,]KEY=VALUE",
            description = "level=OFF|TIMESTAMPS|TENSORS, rate, count, mode=triton|opentelemetry; triton,file=FILE,"
                    + " triton,log-frequency=N; opentelemetry,url=URL, opentelemetry,resource=K=V; may be repeated.")
    List<String> traceConfig = new ArrayList<>();

    @Option(names = "--trace-file", hidden = true)
    String traceFile;

    @Option(names = "--trace-level", hidden = true)
    List<String> traceLevel = new ArrayList<>();

    @Option(names = "--trace-rate", hidden = true)
    String traceRate;

    @Option(names = "--trace-count", hidden = true)
    String traceCount;

    @Option(
            names = {"--trace-log-frequency", "--log-frequency"},
            hidden = true)
    String traceLogFrequency;

    @Option(
            names = "--test-hooks",
            hidden = true,
            description = "Honour TRITONSERVER_DELAY_SCHEDULER and TRITONSERVER_BACKLOG_DELAY_SCHEDULER.")
    boolean testHooks;

    @Mixin
    final DeviceFlags devices = new DeviceFlags();

    /** Whether an option is one of these. */
    static boolean has(OptionSpec option) {
        return option.userObject() instanceof Field field
                && (field.getDeclaringClass() == TritonFlags.class || field.getDeclaringClass() == DeviceFlags.class);
    }

    private boolean autoComplete() {
        return strictModelConfig == null ? !disableAutoComplete : !strictModelConfig;
    }

    /** Returns the trace options of {@code --trace-config} and the deprecated {@code --trace-*} options. */
    TraceOptions trace() {
        Map<String, String> settings = new LinkedHashMap<>();
        Map<String, Map<String, String>> byMode = new LinkedHashMap<>();
        Map<String, String> resource = new LinkedHashMap<>();
        String mode = "triton";
        for (String text : traceConfig) {
            int equals = text.indexOf('=');
            int comma = text.indexOf(',');
            if (equals < 1) {
                throw ServingException.invalidArgument(
                        "--trace-config '" + text + "' is not [MODE,]KEY=VALUE", "for example level=TIMESTAMPS");
            }
            String value = text.substring(equals + 1);
            if (comma >= 0 && comma < equals) {
                String of = text.substring(0, comma);
                String key = text.substring(comma + 1, equals);
                if (!of.equals("triton") && !of.equals("opentelemetry")) {
                    throw ServingException.invalidArgument("--trace-config '" + text + "' is for mode '" + of
                            + "' (expected: triton or opentelemetry)");
                }
                if (of.equals("opentelemetry") && key.equals("resource")) {
                    int inner = value.indexOf('=');
                    if (inner < 1) {
                        throw ServingException.invalidArgument(
                                "--trace-config '" + text + "' is not opentelemetry,resource=KEY=VALUE");
                    }
                    resource.put(value.substring(0, inner), value.substring(inner + 1));
                } else {
                    byMode.computeIfAbsent(of, m -> new LinkedHashMap<>()).put(key, value);
                }
            } else if (text.startsWith("mode=")) {
                mode = value;
            } else {
                String key = text.substring(0, equals);
                settings.merge(key, value, (a, b) -> key.equals("level") ? a + "," + b : b);
            }
        }
        old(settings, byMode.computeIfAbsent("triton", m -> new LinkedHashMap<>()));
        TraceOptions.Mode chosen = switch (mode) {
            case "triton" -> TraceOptions.Mode.TRITON;
            case "opentelemetry" -> TraceOptions.Mode.OPENTELEMETRY;
            default ->
                throw ServingException.invalidArgument(
                        "--trace-config mode='" + mode + "' (expected: triton or opentelemetry)");
        };
        return new TraceOptions(chosen, settings, byMode.getOrDefault(mode, Map.of()), resource);
    }

    private void old(Map<String, String> settings, Map<String, String> triton) {
        if (!traceLevel.isEmpty()) {
            settings.putIfAbsent("level", String.join(",", traceLevel));
        }
        if (traceRate != null) {
            settings.putIfAbsent("rate", traceRate);
        }
        if (traceCount != null) {
            settings.putIfAbsent("count", traceCount);
        }
        if (traceFile != null) {
            triton.putIfAbsent("file", traceFile);
        }
        if (traceLogFrequency != null) {
            triton.putIfAbsent("log-frequency", traceLogFrequency);
        }
    }

    /** Returns the settings of the response cache, its name under the empty key; empty without a cache. */
    private Map<String, String> cache() {
        Map<String, String> cache = new LinkedHashMap<>();
        for (String text : cacheConfig) {
            int comma = text.indexOf(',');
            int equals = text.indexOf('=', comma + 1);
            if (comma < 1 || equals <= comma + 1) {
                throw ServingException.invalidArgument(
                        "--cache-config '" + text + "' is not NAME,KEY=VALUE", "for example local,size=104857600");
            }
            String before = cache.put("", text.substring(0, comma));
            if (before != null && !before.equals(text.substring(0, comma))) {
                throw ServingException.invalidArgument(
                        "found multiple cache configurations, but only a single cache is currently supported",
                        "give --cache-config for either '" + before + "' or '" + text.substring(0, comma) + "'");
            }
            cache.put(text.substring(comma + 1, equals), text.substring(equals + 1));
        }
        if (responseCacheByteSize != null && cache.isEmpty() && responseCacheByteSize > 0) {
            cache.put("", "local");
            cache.put("size", responseCacheByteSize.toString());
        }
        return cache;
    }

    /** Applies these options to the engine's options. */
    void apply(EngineOptions.Builder engine) {
        engine.autoComplete(autoComplete()).loadRetries(modelLoadRetryCount).strictReadiness(strictReadiness);
        MetricsOptions metrics = MetricsOptions.DEFAULT;
        for (String text : metricsConfig) {
            int equals = text.indexOf('=');
            // Triton allows a family before a comma; the settings' names are unique without it.
            int comma = text.substring(0, Math.max(0, equals)).indexOf(',');
            if (equals < 1) {
                throw ServingException.invalidArgument(
                        "--metrics-config '" + text + "' is not [FAMILY,]KEY=VALUE",
                        "for example summary_latencies=true");
            }
            metrics = metrics.with(text.substring(comma + 1, equals), text.substring(equals + 1));
        }
        engine.metrics(metrics);
        if (rateLimit == RateLimit.execution_count) {
            engine.rateLimits(
                    rateLimitResource.stream().map(RateLimiter.Total::parse).toList());
        } else if (!rateLimitResource.isEmpty()) {
            throw ServingException.invalidArgument(
                    "--rate-limit-resource requires --rate-limit=execution_count, which is " + rateLimit,
                    "add --rate-limit=execution_count, or omit the resources");
        }
        engine.hostPolicies(hostPolicies());
        Map<String, String> cache = cache();
        String kind = cache.remove("");
        if (kind != null) {
            engine.cache(new CacheOptions(kind, cache));
        }
        if (testHooks) {
            engine.delays(new DelayOptions(
                    hook("TRITONSERVER_DELAY_SCHEDULER"), hook("TRITONSERVER_BACKLOG_DELAY_SCHEDULER")));
        }
    }

    private static int hook(String variable) {
        String text = System.getenv(variable);
        try {
            return text == null ? 0 : Integer.parseInt(text);
        } catch (NumberFormatException e) {
            throw ServingException.invalidArgument(variable + " is '" + text + "' (expected: a whole number)");
        }
    }

    private Map<String, Map<String, String>> hostPolicies() {
        Map<String, Map<String, String>> policies = new LinkedHashMap<>();
        for (String text : hostPolicy) {
            int comma = text.indexOf(',');
            int equals = text.indexOf('=', comma + 1);
            if (comma < 1 || equals <= comma + 1) {
                throw ServingException.invalidArgument(
                        "--host-policy '" + text + "' is not NAME,KEY=VALUE", "for example cpu_0,cpu-cores=0-1");
            }
            policies.computeIfAbsent(text.substring(0, comma), n -> new LinkedHashMap<>())
                    .put(text.substring(comma + 1, equals), text.substring(equals + 1));
        }
        return policies;
    }

    /** Applies these options to the V2 protocol's options. */
    void apply(V2Options.Builder v2) {
        if (id != null) {
            v2.serverName(id);
        }
        if (allowClientShm) {
            v2.clientSharedMemory(clientShmKeys.stream().map(TritonFlags::glob).toList());
        }
        if (!httpHeaderForwardPattern.isEmpty()) {
            v2.forwardHttpHeaders(pattern("--http-header-forward-pattern", httpHeaderForwardPattern));
        }
        if (!grpcHeaderForwardPattern.isEmpty()) {
            v2.forwardGrpcHeaders(pattern("--grpc-header-forward-pattern", grpcHeaderForwardPattern));
        }
    }

    private static Pattern glob(String text) {
        return Pattern.compile(
                Arrays.stream(text.split("\\*", -1)).map(Pattern::quote).collect(Collectors.joining(".*")));
    }

    private static Pattern pattern(String option, String text) {
        try {
            return Pattern.compile(text, Pattern.CASE_INSENSITIVE);
        } catch (PatternSyntaxException e) {
            throw ServingException.invalidArgument(
                    option + " '" + text + "' is not a regular expression: " + e.getDescription());
        }
    }

    /** Applies Triton's log options, which extend the log level. */
    void apply(Logging logging) {
        Map<String, Object> changes = new LinkedHashMap<>();
        if (logInfo != null) {
            changes.put("log_info", logInfo);
        }
        if (logWarning != null) {
            changes.put("log_warning", logWarning);
        }
        if (logError != null) {
            changes.put("log_error", logError);
        }
        if (logVerbose != null) {
            changes.put("log_verbose_level", logVerbose.longValue());
        }
        Map<String, Object> unused = logging.update(changes);
    }
}
