// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The entry point of Jazzer, which testing/fuzz.sh starts with the name of one target; and of the script itself, which asks for the
 * names of the targets and for their seeds. Confined to one thread.
 */
public final class Fuzzer {
    private static TargetRun run;

    private Fuzzer() {}

    /** Makes the target, and loads its classes by running the seeds; Jazzer calls it before the first input. */
    public static void fuzzerInitialize(String[] arguments) {
        String name = arguments[0];
        run = new TargetRun(name, FuzzTargets.target(name));
        for (byte[] seed : FuzzTargets.seeds(name)) {
            try {
                run.run(seed);
            } catch (RuntimeException | Error e) {
                // Jazzer runs the seeds too, and reports what they throw.
            }
        }
    }

    /** Reads one input; Jazzer reports what it throws. */
    public static void fuzzerTestOneInput(byte[] input) {
        run.run(input);
    }

    /** {@code names}: prints the targets. {@code seeds TARGET FOLDER}: writes the target's seeds to files. */
    public static void main(String[] arguments) throws IOException {
        switch (arguments[0]) {
            case "names" -> FuzzTargets.names().forEach(System.out::println);
            case "seeds" -> {
                Path folder = Files.createDirectories(Path.of(arguments[2]));
                int count = 0;
                for (byte[] seed : FuzzTargets.seeds(arguments[1])) {
                    Files.write(folder.resolve("seed-" + count++), seed);
                }
            }
            default ->
                throw new IllegalArgumentException(
                        "unknown command '" + arguments[0] + "' (expected: names, or seeds TARGET FOLDER)");
        }
    }
}
