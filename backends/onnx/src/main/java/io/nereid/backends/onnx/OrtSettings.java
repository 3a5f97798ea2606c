// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession.SessionOptions;
import ai.onnxruntime.OrtSession.SessionOptions.ExecutionMode;
import ai.onnxruntime.OrtSession.SessionOptions.OptLevel;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.parameters.LatencyObjective;
import io.nereid.spi.config.parameters.PaddingPolicy;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A model's ONNX Runtime settings, read from the parameters in its configuration. Immutable.
 *
 * <p>The defaults differ from ONNX Runtime's: one thread per run, and no spinning. Runs of several instances go on in
 * parallel, so more threads per run would compete for the same cores.
 *
 * @param threadsGiven whether the configuration says how many threads a run has
 */
record OrtSettings(
        int intraThreads,
        int interThreads,
        boolean parallel,
        boolean arena,
        boolean memoryPattern,
        OptLevel level,
        String shrinkage,
        boolean threadsGiven,
        Map<String, String> entries) {
    private static final Logger LOG = LoggerFactory.getLogger(OrtSettings.class);
    private static final String INTRA = "intra_op_thread_count";
    private static final String INTER = "inter_op_thread_count";
    private static final String MODE = "execution_mode";
    private static final String ARENA = "enable_mem_arena";
    private static final String PATTERN = "enable_mem_pattern";
    private static final String LEVEL = "optimization.graph.level";
    static final String SHRINKAGE = "memory.enable_memory_arena_shrinkage";
    private static final String INTRA_SPIN = "session.intra_op.allow_spinning";
    private static final String INTER_SPIN = "session.inter_op.allow_spinning";
    private static final List<String> FLAGS = List.of(
            INTRA_SPIN, INTER_SPIN, "session.use_device_allocator_for_initializers", "session.set_denormal_as_zero");
    /** Parameters that other parts of the server read. */
    private static final List<String> FOREIGN = Stream.concat(
                    Stream.of(
                            "TRITON_BATCH_STRATEGY_PATH",
                            DynamicBatching.ANTICIPATION,
                            LatencyObjective.PARAMETER,
                            "nereid.batch_id",
                            GpuOptions.FALLBACK,
                            OnnxModel.PROVIDERS,
                            "nereid.kserve_server"),
                    PaddingPolicy.PARAMETERS.stream())
            .toList();

    private static final List<String> KNOWN = Stream.concat(
                    Stream.of(INTRA, INTER, MODE, ARENA, PATTERN, LEVEL, SHRINKAGE), FLAGS.stream())
            .toList();
    private static final Pattern ARENAS = Pattern.compile("(cpu:0|gpu:\\d{1,4})(;(cpu:0|gpu:\\d{1,4}))*");

    /** Reads the settings from the configuration's parameters alone. */
    static OrtSettings read(Map<String, String> parameters, int cores) {
        return read(parameters, 0, cores, Map.of(), false);
    }

    /**
     * Reads the settings.
     *
     * @param given parameters of the model's configuration
     * @param graphLevel the configuration's {@code optimization.graph.level}; a parameter of that name overrides it
     * @param cores the number of threads that a thread count of 0 means
     * @param defaults the backend's settings; a parameter overrides them
     * @param gpu whether the model has instances on GPUs; {@link GpuOptions} then reads the options of the execution providers
     * @throws ServingException INVALID_ARGUMENT for a value outside the allowed range
     */
    static OrtSettings read(
            Map<String, String> given, int graphLevel, int cores, Map<String, String> defaults, boolean gpu) {
        Map<String, String> parameters = new LinkedHashMap<>(given);
        for (String key : List.of(INTRA, INTER)) {
            if (defaults.containsKey(key)) {
                parameters.putIfAbsent(key, defaults.get(key));
            }
        }
        if (graphLevel != 0) {
            parameters.putIfAbsent(LEVEL, Integer.toString(graphLevel));
        }
        parameters.keySet().removeAll(FOREIGN);
        Map<String, String> entries = new LinkedHashMap<>();
        entries.put(INTRA_SPIN, "0");
        entries.put(INTER_SPIN, "0");
        for (Map.Entry<String, String> parameter : parameters.entrySet()) {
            String key = parameter.getKey();
            if (GpuOptions.MODEL_PARAMETERS.contains(key) && !gpu) {
                throw ServingException.invalidArgument(
                        "parameter '" + key + "' is for runs on a GPU, and this model runs on CPUs", "remove it");
            }
            if (key.startsWith("session.") && !FLAGS.contains(key)) {
                // A session option of ONNX Runtime: passed through, ONNX Runtime validates it.
                entries.put(key, parameter.getValue());
            } else if (!KNOWN.contains(key) && !GpuOptions.MODEL_PARAMETERS.contains(key)) {
                // Parameters are free-form: a client may read one of its own from the configuration. So only warn.
                LOG.warn(
                        "the onnxruntime backend does not know parameter '{}'; {}",
                        key,
                        NameSuggestions.didYouMean(key, KNOWN, "it knows " + String.join(", ", KNOWN)));
            }
        }
        for (String flag : FLAGS) {
            if (parameters.containsKey(flag)) {
                entries.put(flag, choice(parameters, flag, 0, 0, 1) == 1 ? "1" : "0");
            }
        }
        boolean parallel = choice(parameters, MODE, 0, 0, 1) == 1;
        String shrinkage = parameters.getOrDefault(SHRINKAGE, "");
        if (!shrinkage.isEmpty() && (!ARENAS.matcher(shrinkage).matches() || (!gpu && !shrinkage.contains("cpu:0")))) {
            throw ServingException.invalidArgument("parameter '" + SHRINKAGE + "' is '" + shrinkage
                    + (gpu ? "' (expected: cpu:0, gpu:N, or several of them with ; between)" : "' (expected: cpu:0)"));
        }
        boolean arena = choice(parameters, ARENA, 1, 0, 1) == 1;
        if (shrinkage.contains("cpu:0") && !arena) {
            throw ServingException.invalidArgument(
                    "parameter '" + SHRINKAGE + "' shrinks an arena that '" + ARENA + "' turns off",
                    "remove one of them");
        }
        return new OrtSettings(
                threads(parameters, INTRA, 1, cores),
                threads(parameters, INTER, parallel ? cores : 1, cores),
                parallel,
                arena,
                choice(parameters, PATTERN, 1, 0, 1) == 1,
                switch (choice(parameters, LEVEL, 0, -1, 2)) {
                    case -1 -> OptLevel.BASIC_OPT;
                    case 1 -> OptLevel.EXTENDED_OPT;
                    case 2 -> OptLevel.NO_OPT;
                    default -> OptLevel.ALL_OPT;
                },
                shrinkage,
                parallel || parameters.containsKey(INTRA) || parameters.containsKey(INTER),
                Map.copyOf(entries));
    }

    /** These settings with another number of threads for each run. */
    OrtSettings withIntraThreads(int threads) {
        return new OrtSettings(
                threads, interThreads, parallel, arena, memoryPattern, level, shrinkage, threadsGiven, entries);
    }

    private static int threads(Map<String, String> parameters, String key, int otherwise, int cores) {
        int given = choice(parameters, key, otherwise, 0, 1024);
        return given == 0 ? cores : given;
    }

    private static int choice(Map<String, String> parameters, String key, int otherwise, int least, int most) {
        String text = parameters.get(key);
        if (text == null) {
            return otherwise;
        }
        try {
            int value = Integer.parseInt(text.strip());
            if (value >= least && value <= most) {
                return value;
            }
        } catch (NumberFormatException e) {
            // Rejected below, like a number out of range.
        }
        String expected = most - least == 1 ? least + " or " + most : "a whole number from " + least + " to " + most;
        throw ServingException.invalidArgument("Invalid configuration value provided. Expected values for " + key
                + " are " + expected + " but got " + text);
    }

    /** The arenas that a run shrinks, of those that its session has: {@code cpu:0}, and that of its GPU; empty for none. */
    String shrinkage(int device) {
        return Stream.of(shrinkage.split(";", -1))
                .filter(arena -> arena.equals("cpu:0") || arena.equals("gpu:" + device))
                .distinct()
                .collect(Collectors.joining(";"));
    }

    /** Creates the session options, owned by the caller. */
    SessionOptions open() throws OrtException {
        SessionOptions options = new SessionOptions();
        try {
            options.setIntraOpNumThreads(intraThreads);
            options.setInterOpNumThreads(interThreads);
            options.setExecutionMode(parallel ? ExecutionMode.PARALLEL : ExecutionMode.SEQUENTIAL);
            options.setCPUArenaAllocator(arena);
            options.setMemoryPatternOptimization(memoryPattern);
            options.setOptimizationLevel(level);
            options.setSessionLogLevel(ai.onnxruntime.OrtLoggingLevel.ORT_LOGGING_LEVEL_FATAL);
            for (Map.Entry<String, String> entry : entries.entrySet()) {
                options.addConfigEntry(entry.getKey(), entry.getValue());
            }
            return options;
        } catch (OrtException e) {
            options.close();
            throw e;
        }
    }
}
