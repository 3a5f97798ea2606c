// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicContainer;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Runs the seeds of every target, and the inputs that were findings once, without Jazzer. */
class CorpusTest {
    private static final long LARGEST_CORPUS = 300_000;

    @TestFactory
    Stream<DynamicContainer> everyInputOfTheCorpusIsReadOrRefused() {
        return FuzzTargets.names().stream().map(name -> {
            TargetRun run = new TargetRun(name, FuzzTargets.target(name));
            Stream<DynamicTest> files = FuzzTargets.findings(name).stream()
                    .map(file -> DynamicTest.dynamicTest(
                            file.getFileName().toString(), () -> run(run, List.of(Files.readAllBytes(file)))));
            Stream<DynamicTest> seeds = Stream.of(DynamicTest.dynamicTest("seeds", () -> {
                List<byte[]> all = FuzzTargets.seeds(name);
                long before = run.accepted();
                run(run, all);
                assertThat(run.accepted() - before)
                        .as("seeds of %s that are valid inputs, of %d", name, all.size())
                        .isPositive();
            }));
            return DynamicContainer.dynamicContainer(name, Stream.concat(seeds, files));
        });
    }

    /** An input that takes for ever fails its test, and does not hold up the build. */
    private static void run(TargetRun target, List<byte[]> inputs) {
        assertTimeoutPreemptively(Duration.ofMinutes(2), () -> inputs.forEach(target::run));
    }

    @Test
    void everyFolderOfTheCorpusBelongsToATarget() throws IOException {
        try (Stream<Path> folders = Files.list(FuzzTargets.CORPUS)) {
            assertThat(folders.map(f -> f.getFileName().toString()))
                    .as("folders of the corpus whose inputs no target reads")
                    .isSubsetOf(new TreeSet<>(FuzzTargets.names()));
        }
    }

    @Test
    void theCorpusIsSmall() throws IOException {
        try (Stream<Path> files = Files.walk(FuzzTargets.CORPUS)) {
            long bytes = files.filter(Files::isRegularFile)
                    .mapToLong(f -> f.toFile().length())
                    .sum();
            assertThat(bytes).as("bytes of the corpus in the repository").isLessThan(LARGEST_CORPUS);
        }
    }
}
