// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import io.nereid.testing.kubernetes.TestCluster;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/**
 * The helm that {@code testing/kubernetes/helm.sh} builds. Thread-safe.
 *
 * @param directory where its output and its own files are kept
 */
record Helm(Path directory) {
    private static final Path SCRIPT = TestCluster.root().resolve("testing/kubernetes/helm.sh");

    /** Why there is none; empty when it is built. */
    Optional<String> unavailable() throws InterruptedException {
        try {
            if (!run("binary").isBlank()) {
                return Optional.empty();
            }
        } catch (IOException e) {
            // It says so by its exit status.
        }
        return Optional.of("helm is not built (testing/kubernetes/helm.sh build): the chart is not tested");
    }

    /** Runs it and returns what it prints; fails with that and its error output. */
    String run(String... arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(SCRIPT.toString()));
        command.addAll(List.of(arguments));
        Path out = Files.createTempFile(directory, "helm", ".out");
        Path err = Files.createTempFile(directory, "helm", ".err");
        ProcessBuilder builder =
                new ProcessBuilder(command).redirectOutput(out.toFile()).redirectError(err.toFile());
        // Nothing of the user's own configuration of helm may change the result.
        for (String folder : List.of("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")) {
            builder.environment().put(folder, directory.resolve("helm").toString());
        }
        Process process = builder.start();
        if (!process.waitFor(5, TimeUnit.MINUTES)) {
            process.destroyForcibly();
            throw new IOException("helm " + String.join(" ", arguments) + " took more than five minutes");
        }
        if (process.exitValue() != 0) {
            throw new IOException(
                    "helm " + String.join(" ", arguments) + ": " + Files.readString(err) + Files.readString(out));
        }
        return Files.readString(out);
    }

    /** A file of values, or of anything else that is YAML. */
    Path file(String text) throws IOException {
        Path file = Files.createTempFile(directory, "values", ".yaml");
        Files.writeString(file, text);
        return file;
    }
}
