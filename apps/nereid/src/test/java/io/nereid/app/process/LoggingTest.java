// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.process;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.LogManager;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The lines of the log in its formats. */
class LoggingTest {
    /** What a client may send as the name of a model. */
    private static final String FORGED =
            "name\r\n2026-01-01T00:00:00Z INFO  access - {\"caller\":\"admin\"}\n\u001b[2J\u009b\0";

    @TempDir
    Path dir;

    @AfterEach
    void reset() {
        LogManager.getLogManager().reset();
    }

    @ParameterizedTest
    @EnumSource(Logging.Format.class)
    void aMessageDoesNotForgeAnEntry(Logging.Format format) throws Exception {
        Path file = dir.resolve(format + ".log");
        Logging.configure(format, Level.INFO, file);
        Logger.getLogger("test").log(Level.WARNING, "no model " + FORGED, new IllegalStateException(FORGED));
        Logger.getLogger("test").info("next");
        List<String> lines = Files.readAllLines(file);
        assertThat(lines.get(lines.size() - 1)).contains("next");
        assertThat(lines.subList(1, lines.size() - 1))
                .allSatisfy(line -> assertThat(line).doesNotStartWith("2026"));
        assertThat(String.join("", lines).chars()).noneMatch(c -> c < ' ' && c != '\t');
    }

    @Test
    void aFileThatWasMovedIsOpenedAgain() throws Exception {
        Path file = dir.resolve("server.log");
        Logging logging = Logging.configure(Logging.Format.TEXT, Level.INFO, file);
        Logger.getLogger("test").info("one");
        Files.move(file, dir.resolve("server.log.1"));
        logging.reopen();
        Logger.getLogger("test").info("two");
        assertThat(Files.readAllLines(file)).singleElement().asString().endsWith("test - two");
        assertThat(dir.resolve("server.log.1")).content().contains("test - one");
    }
}
