// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** Finds the distribution that the build has made. Stateless. */
final class BuiltDistribution {
    private BuiltDistribution() {}

    /** The directory of the checkout. */
    static Path top() {
        Path here = Path.of("").toAbsolutePath();
        return Files.isDirectory(here.resolve("apps"))
                ? here
                : here.resolve("../..").normalize();
    }

    /** The directory in which the build of the distribution writes. */
    static Path target() {
        return top().resolve("apps/nereid/target");
    }

    /**
     * Returns the directory of the unpacked distribution; aborts the test when it is not built.
     *
     * @param what what is then not tested
     */
    static Path directory(String what) throws IOException {
        Path built = target().resolve("dist");
        List<Path> found = new ArrayList<>();
        if (Files.isDirectory(built)) {
            try (Stream<Path> list = Files.list(built)) {
                list.filter(d -> Files.isDirectory(d.resolve("lib"))).forEach(found::add);
            }
        }
        assumeTrue(!found.isEmpty(), "NOT TESTED: " + what + "; the distribution is not built: " + built);
        assertThat(found).hasSize(1);
        return found.get(0);
    }
}
