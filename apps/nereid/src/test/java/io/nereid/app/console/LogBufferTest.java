// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.console;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import org.junit.jupiter.api.Test;

/** What a page of the log receives. */
class LogBufferTest {
    private final LogBuffer log = new LogBuffer();

    private void publish(Level level, String message) {
        LogRecord entry = new LogRecord(level, message);
        entry.setLoggerName("io.nereid.test");
        log.publish(entry);
    }

    private static List<JsonNode> read(LiveStreams.Lines lines) throws IOException {
        List<JsonNode> read = new ArrayList<>();
        for (String line : new String(lines.next(), StandardCharsets.UTF_8).split("\n", -1)) {
            if (!line.isEmpty()) {
                read.add(new ObjectMapper().readTree(line));
            }
        }
        return read;
    }

    @Test
    void aPageGetsWhatIsKeptAndThenWhatIsNew() throws Exception {
        publish(Level.INFO, "first \"quoted\"\nline");
        LiveStreams.Lines page = log.reader();
        LiveStreams.Lines other = log.reader();
        assertThat(read(page)).singleElement().satisfies(r -> {
            assertThat(r.get("message").asText()).isEqualTo("first \"quoted\"\nline");
            assertThat(r.get("level").asText()).isEqualTo("INFO");
        });
        assertThat(read(page)).isEmpty();
        publish(Level.SEVERE, "second");
        assertThat(read(page)).extracting(r -> r.get("level").asText()).containsExactly("ERROR");
        assertThat(read(other)).hasSize(2);
    }

    @Test
    void aSlowPageLearnsHowMuchItMissed() throws Exception {
        LiveStreams.Lines page = log.reader();
        publish(Level.INFO, "seen");
        assertThat(read(page)).hasSize(1);
        for (int i = 0; i < 1_200; i++) {
            publish(Level.INFO, "record " + i);
        }
        List<JsonNode> next = read(page);
        assertThat(next.get(0).get("missed").asInt()).isEqualTo(200);
        assertThat(next).hasSize(1_001);
        assertThat(next.get(1_000).get("message").asText()).isEqualTo("record 1199");
    }

    @Test
    void anExceptionIsAPartOfItsRecord() throws Exception {
        LogRecord entry = new LogRecord(Level.WARNING, "failed");
        entry.setThrown(new IllegalStateException("the reason"));
        log.publish(entry);
        assertThat(read(log.reader()).get(0).get("exception").asText()).contains("the reason", "LogBufferTest");
    }
}
