// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The program with model files, and with a configuration file, as a process: what it serves, and how it ends. */
class ServeFilesTest {
    @TempDir
    Path dir;

    private ServeProcess start(String... arguments) throws IOException {
        return new ServeProcess(dir.resolve("cache"), arguments);
    }

    private String good() throws IOException {
        Path file = dir.resolve("stump.json");
        try (InputStream in = Objects.requireNonNull(getClass().getResourceAsStream("/io/nereid/app/stump.json"))) {
            Files.copy(in, file);
        }
        return file.toString();
    }

    private String file(String name, String text) throws IOException {
        return Files.writeString(dir.resolve(name), text).toString();
    }

    @Test
    void aFileThatNoBackendReadsEndsTheStart() throws Exception {
        String file = file("notes.bin", "not a model");
        try (ServeProcess server = start(file)) {
            assertThat(server.ended()).isEqualTo(1);
            server.until(line -> line.equals("nereid: no backend of this server reads '" + file + "'"));
            server.until(line -> line.contains("nereid convert " + file + " says what the file is"));
            assertThat(server.output).noneMatch(line -> line.contains("listening on"));
        }
    }

    @Test
    void aFileThatCannotBeLoadedEndsTheStartWithItsReason() throws Exception {
        String file = file("model.json", "{}");
        try (ServeProcess server = start(file, "--model-load-retry-count=0")) {
            assertThat(server.ended()).isEqualTo(1);
            server.until(line -> line.startsWith("nereid: '" + file + "' cannot be served: ") && line.length() > 60);
            assertThat(server.output).noneMatch(line -> line.startsWith("\tat "));
        }
        try (ServeProcess server = start(file, "--exit-on-error=false")) {
            server.listening();
        }
    }

    @Test
    void oneFileThatServesIsEnough() throws Exception {
        try (ServeProcess server = start(good(), file("notes.bin", "not a model"))) {
            assertThat(server.listening().get("/v2/models/stump/ready").statusCode())
                    .isEqualTo(200);
        }
    }

    @Test
    void theConfigurationFileIsInForce() throws Exception {
        String file = file("nereid.yaml", "models: [" + good() + "]\nid: from-the-file\nport: 1\n");
        try (ServeProcess server = start("--config", file)) {
            // The port is the one of the command line.
            assertThat(server.listening().get("/v2").body()).contains("\"name\":\"from-the-file\"");
        }
    }
}
