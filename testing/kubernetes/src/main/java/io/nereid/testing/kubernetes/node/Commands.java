// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.kubernetes.node;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Runs short commands of the machine. Stateless. */
final class Commands {
    private static final int LIMIT_SECONDS = 60;

    private Commands() {}

    /** Runs a command and waits for its end; fails with what it printed. */
    static void run(String... command) throws IOException {
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String printed = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        try {
            if (!process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly();
                throw new IOException(String.join(" ", command) + " took more than " + LIMIT_SECONDS + " s");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted", e);
        }
        if (process.exitValue() != 0) {
            throw new IOException(String.join(" ", command) + ": " + printed.strip());
        }
    }

    /** Quotes a text for a shell. */
    static String quoted(String text) {
        return "'" + text.replace("'", "'\\''") + "'";
    }

    /** Quotes the words of a command for a shell. */
    static String quoted(List<String> words) {
        StringBuilder text = new StringBuilder();
        for (String word : words) {
            text.append(text.isEmpty() ? "" : " ").append(quoted(word));
        }
        return text.toString();
    }
}
