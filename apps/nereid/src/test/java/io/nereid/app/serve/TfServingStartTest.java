// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The program with the options of tensorflow_model_server, as a process: when its port opens, and how it ends. */
class TfServingStartTest {
    @TempDir
    Path dir;

    private Path base() throws IOException {
        return Files.createDirectories(dir.resolve("models/stump"));
    }

    private void version(String name) throws IOException {
        Path version = Files.createDirectories(dir.resolve("new"));
        try (InputStream in = Objects.requireNonNull(getClass().getResourceAsStream("/io/nereid/app/stump.json"))) {
            Files.copy(in, version.resolve("model.json"));
        }
        Files.move(version, base().resolve(name));
    }

    private ServeProcess start(String... options) throws IOException {
        List<String> all = new ArrayList<>(List.of("--model_base_path=" + base()));
        all.addAll(List.of(options));
        return new ServeProcess(dir.resolve("cache"), all.toArray(String[]::new));
    }

    @Test
    void thePortOpensWhenTheModelServes() throws Exception {
        try (ServeProcess server = start(
                "--grpc_channel_arguments=grpc.max_connection_age_ms=2000",
                "--prefer_tflite_model=true",
                "--platform_config_file=/nowhere/platform.config",
                "--tensorflow_session_config_file=/nowhere/session.config",
                "--xla_cpu_compilation_enabled",
                "--enable_profiler=true",
                "--use_alts_credentials=false",
                "--grpc_max_threads=8")) {
            server.until(line -> line.contains("waiting for a first version of default"));
            assertThat(server.open()).as("before the model serves").isFalse();
            version("1");
            server.listening();
            assertThat(server.open()).isTrue();
            for (String option : List.of(
                    "--grpc_channel_arguments",
                    "--prefer_tflite_model",
                    "--platform_config_file",
                    "--tensorflow_session_config_file",
                    "--xla_cpu_compilation_enabled",
                    "--enable_profiler",
                    "--grpc_max_threads")) {
                assertThat(server.output)
                        .as(option)
                        .filteredOn(line -> line.contains(option) && line.contains(" no effect: "))
                        .hasSize(1);
            }
            assertThat(server.output).noneMatch(line -> line.contains("alts"));
        }
    }

    @Test
    void aModelThatDoesNotLoadEndsTheStart() throws Exception {
        Files.writeString(Files.createDirectories(base().resolve("1")).resolve("model.json"), "{}");
        try (ServeProcess server = start("--max_num_load_retries=0")) {
            assertThat(server.ended()).isEqualTo(1);
            server.until(line -> line.contains("Failed to start server. Error: 1 servable(s) did not become available:"
                    + " {{name: default version: 1} due to error: "));
            assertThat(server.output).noneMatch(line -> line.contains("listening on"));
        }
    }

    @Test
    void thePortOpensAtOnceWhereThatIsAskedFor() throws Exception {
        Files.writeString(Files.createDirectories(base().resolve("1")).resolve("model.json"), "{}");
        try (ServeProcess server = start("--max_num_load_retries=0", "--ports-after-models=false")) {
            assertThat(server.listening().open()).isTrue();
        }
    }

    @Test
    void credentialsThatAreNotThereAreNotLeftOut() throws Exception {
        try (ServeProcess server = start("--use_alts_credentials=true")) {
            assertThat(server.ended()).isEqualTo(1);
            server.until(line -> line.contains("--use_alts_credentials=true is not supported"));
        }
    }
}
