// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package com.example.flink;

import io.nereid.embedded.ModelSettings;
import io.nereid.embedded.Nereid;
import java.nio.file.Path;
import java.time.Duration;

/**
 * The models of a TaskManager: one engine for all subtasks of a job in this process, from the first that opens it until the last has closed it.
 * Without it each subtask would have the models in memory once more, and requests of different subtasks would never share a batch.
 */
final class SharedModels {
    private static Nereid nereid;
    private static int users;

    private SharedModels() {}

    /**
     * Returns the engine, and makes it for the first user. Each call is followed by one of {@link #close}.
     *
     * @param models the folder of the models, the same for all callers; it has to be there on each machine
     */
    static synchronized Nereid open(String models) {
        if (nereid == null) {
            nereid = Nereid.builder()
                    .model("iris", Path.of(models, "iris"), ModelSettings.DEFAULT.batching(64, Duration.ofMillis(2)))
                    .reload(Duration.ofSeconds(30))
                    .build();
        }
        users++;
        return nereid;
    }

    static synchronized void close() {
        users--;
        if (users == 0) {
            nereid.close();
            nereid = null;
        }
    }

    /** Whether no subtask has the engine. */
    static synchronized boolean isClosed() {
        return nereid == null;
    }
}
