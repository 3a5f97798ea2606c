// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.lifecycle.TransitionPolicy.Step;
import io.nereid.lifecycle.TransitionPolicy.VersionSnapshot;
import io.nereid.spi.ServableState.Phase;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The acceptance table of both policies, row by row; a = aspired, u = no longer. */
class TransitionPolicyTest {
    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            1 unloading u, 2 failed u, 3 available a, 4 tracked a, 5 tracked a     | load 5
            1 unloading u, 2 failed u, 3 available u, 4 available a, 5 tracked a   | unload 3
            1 gone u, 2 available u, 3 failed u                                    | unload 2
            1 available a, 2 failed a, 3 loading a, 4 unloading u, 5 gone u        | none
            1 available u, 2 loading a                                             | none
            1 available u, 2 failed a                                              | none
            1 available u, 2 loading a, 3 available a                              | unload 1
            1 available u, 2 failed a, 3 available a                               | unload 1
            2 available u, 1 available u, 3 failed a, 4 loading a                  | unload 1
            1 available u, 2 warming a                                             | none
            1 available u, 2 tracked a                                             | load 2
            """)
    void availabilityComesFirst(String versions, String step) {
        check(TransitionPolicy.AVAILABILITY_PRESERVING, versions, step);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            1 unloading u, 2 available a, 3 available u, 4 tracked a, 5 available u | unload 3
            1 available a, 2 loading a, 3 tracked a, 4 gone u, 5 tracked a          | load 5
            1 available a, 2 failed a, 3 loading a, 4 unloading u, 5 gone u         | none
            1 draining u, 2 tracked a                                               | none
            1 failed u, 2 tracked a                                                 | load 2
            1 failed u, 2 draining u, 3 tracked a                                   | none
            1 failed u, 2 gone u, 3 tracked a                                       | load 3
            """)
    void resourcesComeFirst(String versions, String step) {
        check(TransitionPolicy.RESOURCE_PRESERVING, versions, step);
    }

    private static void check(TransitionPolicy policy, String text, String expected) {
        List<VersionSnapshot> versions = new ArrayList<>();
        for (String one : text.split(",")) {
            String[] words = one.strip().split(" ");
            versions.add(new VersionSnapshot(
                    Long.parseLong(words[0]), Phase.valueOf(words[1].toUpperCase(Locale.ROOT)), words[2].equals("a")));
        }
        assertThat(describe(policy.next(versions), versions)).isEqualTo(expected);
        if (policy == TransitionPolicy.AVAILABILITY_PRESERVING) {
            Collections.shuffle(versions, new Random(1));
            assertThat(describe(policy.next(versions), versions))
                    .as("in any order")
                    .isEqualTo(expected);
        }
    }

    private static String describe(@Nullable Step step, List<VersionSnapshot> versions) {
        return step == null
                ? "none"
                : step.kind().name().toLowerCase(Locale.ROOT) + " "
                        + versions.get(step.index()).version();
    }
}
