// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import io.nereid.backend.BackendContext;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The backend's settings: {@code --backend-config python,KEY=VALUE}. Immutable.
 *
 * @param python the interpreter of models without an environment of their own
 * @param initialBytes size of the first shared-memory file that server and worker each create
 * @param growthBytes size of the further files
 * @param prefix prefix of the files' names, which exist only until both sides have mapped the file
 * @param directories directories for the files; the first with enough free space is used
 * @param connectTimeout how long an interpreter may take to start
 * @param loadTimeout how long importing and initialising a model may take
 * @param finalizeTimeout how long a model's {@code finalize} may take
 */
record PythonSettings(
        String python,
        int initialBytes,
        int growthBytes,
        String prefix,
        List<Path> directories,
        Duration connectTimeout,
        Duration loadTimeout,
        Duration finalizeTimeout) {
    static final String PYTHON = "python";
    private static final String INITIAL = "shm-default-byte-size";
    private static final String GROWTH = "shm-growth-byte-size";
    private static final String PREFIX = "shm-region-prefix-name";
    private static final String CONNECT = "stub-timeout-seconds";
    private static final String LOAD = "initialize-timeout-seconds";
    private static final String FINALIZE = "finalize-timeout-seconds";
    /** A setting for all backends, which is accepted and not used: a Python model sets its batch size itself. */
    private static final String DEFAULT_MAX_BATCH_SIZE = "default-max-batch-size";

    private static final List<String> KEYS =
            List.of(PYTHON, INITIAL, GROWTH, PREFIX, CONNECT, LOAD, FINALIZE, DEFAULT_MAX_BATCH_SIZE);

    private static final String ENVIRONMENT = "EXECUTION_ENV_PATH";
    private static final String MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY";
    private static final int MEBIBYTE = 1 << 20;

    /** The names of the backend's settings. */
    static Set<String> names() {
        return Set.copyOf(KEYS);
    }

    /** @throws ServingException INVALID_ARGUMENT for an unknown setting or an invalid value */
    static PythonSettings read(BackendContext context) {
        Map<String, String> given = context.settings();
        for (String key : given.keySet()) {
            if (!KEYS.contains(key)) {
                throw ServingException.invalidArgument(
                        "unknown setting '" + key + "' of the python backend (known: " + String.join(", ", KEYS) + ")",
                        NameSuggestions.didYouMean(key, KEYS, "remove it"));
            }
        }
        List<Path> directories = new ArrayList<>();
        for (Path candidate : List.of(Path.of("/dev/shm"), Path.of(System.getProperty("java.io.tmpdir")))) {
            if (Files.isDirectory(candidate) && Files.isWritable(candidate)) {
                directories.add(candidate);
            }
        }
        return new PythonSettings(
                given.getOrDefault(PYTHON, "python3"),
                number(given, INITIAL, 4 * MEBIBYTE, MEBIBYTE, 1 << 30),
                number(given, GROWTH, 16 * MEBIBYTE, 64, 1 << 30),
                given.getOrDefault(PREFIX, "nereid") + "-",
                List.copyOf(directories),
                Duration.ofSeconds(number(given, CONNECT, 30, 1, 86400)),
                Duration.ofSeconds(number(given, LOAD, 600, 1, 86400)),
                Duration.ofSeconds(number(given, FINALIZE, 30, 1, 86400)));
    }

    private static int number(Map<String, String> given, String key, int otherwise, int least, int most) {
        String text = given.get(key);
        if (text == null) {
            return otherwise;
        }
        try {
            long value = Long.parseLong(text.strip());
            if (value >= least && value <= most) {
                return (int) value;
            }
        } catch (NumberFormatException e) {
            // Rejected below.
        }
        throw ServingException.invalidArgument("setting '" + key + "' of the python backend is '" + text
                + "' (expected: a whole number from " + least + " to " + most + ")");
    }

    /**
     * The interpreter of a model: the one of its {@code EXECUTION_ENV_PATH}, else the backend's.
     *
     * @throws ServingException INVALID_ARGUMENT when the path is not a virtual or conda environment
     */
    String interpreter(ModelLocation source, ModelConfig config) {
        String text = config.parameters().getOrDefault(ENVIRONMENT, "").strip();
        if (text.isEmpty()) {
            return python;
        }
        Path path = Path.of(text.replace(
                MODEL_DIRECTORY, source.modelDirectory().toAbsolutePath().toString()));
        if (Files.isDirectory(path)) {
            for (String name : List.of("python", "python3")) {
                Path candidate = path.resolve("bin").resolve(name);
                if (Files.isExecutable(candidate)) {
                    return candidate.toAbsolutePath().toString();
                }
            }
            throw environment(source, path, "has no bin/python");
        }
        throw environment(
                source,
                path,
                !Files.exists(path)
                        ? "does not exist"
                        : path.getFileName().toString().matches(".*\\.(tar|tgz|zip|tar\\..*)")
                                ? "is an archive, which is not unpacked here"
                                : "is not a directory");
    }

    private static ServingException environment(ModelLocation source, Path path, String problem) {
        return ServingException.of(
                ErrorCode.INVALID_ARGUMENT,
                "the " + ENVIRONMENT + " of model '" + source.id().model() + "', " + path + ", " + problem
                        + " (expected: the directory of a virtual or conda environment)",
                "make one with python3 -m venv, or unpack the archive, and name its directory");
    }
}
