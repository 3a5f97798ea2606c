// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.harness;

import com.google.errorprone.annotations.FormatMethod;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.stream.Stream;

/**
 * The settings of a benchmark run. Immutable.
 *
 * @param root the source tree
 */
public record BenchmarkSettings(
        Path distribution,
        Path root,
        Path scratch,
        int rounds,
        double seconds,
        double warmup,
        double soakSeconds,
        PrintStream out) {
    /** Returns these settings for another distribution. */
    public BenchmarkSettings of(Path other) {
        return new BenchmarkSettings(other, root, scratch, rounds, seconds, warmup, soakSeconds, out);
    }

    /** Prints a line of progress. */
    @FormatMethod
    public void log(String text, Object... values) {
        out.println("  " + String.format(Locale.ROOT, text, values));
        out.flush();
    }

    /** The example models. */
    public Path examples() {
        return root.resolve("examples/models");
    }

    /** Creates a scratch directory. */
    public Path directory(String name) throws IOException {
        return Files.createDirectories(scratch.resolve(name));
    }

    /** Deletes a directory recursively. */
    public static void delete(Path directory) {
        try (Stream<Path> all = Files.walk(directory)) {
            for (Path p : all.sorted(java.util.Comparator.reverseOrder()).toList()) {
                Files.deleteIfExists(p);
            }
        } catch (IOException e) {
            System.err.println("bench: could not delete " + directory + ": " + e.getMessage());
        }
    }
}
