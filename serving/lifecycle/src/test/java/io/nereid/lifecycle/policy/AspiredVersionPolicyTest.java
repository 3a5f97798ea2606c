// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.policy;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.lifecycle.policy.AspiredVersionPolicy.Step;
import io.nereid.lifecycle.policy.AspiredVersionPolicy.VersionSnapshot;
import io.nereid.spi.ServableState.Phase;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** TensorFlow Serving's test table of both policies, row by row; a = aspired, u = no longer aspired. */
class AspiredVersionPolicyTest {
    @ParameterizedTest(name = "{0}")
    @CsvSource(delimiter = '|', textBlock = """
        loads the newest wanted one                | 1 unloading u, 2 failed u, 3 available a, 4 tracked a, 5 tracked a   | load 5
        unloads the unwanted one first             | 1 unloading u, 2 failed u, 3 available u, 4 available a, 5 tracked a | unload 3
        unloads the first when none is wanted      | 1 gone u, 2 available u, 3 failed u                                  | unload 2
        does nothing when there is nothing to do   | 1 available a, 2 failed a, 3 loading a, 4 unloading u, 5 gone u      | none
        does not unload while the other is loading | 1 available u, 2 loading a                                           | none
        does not unload when the other failed      | 1 available u, 2 failed a                                            | none
        unloads if one serves though one loads     | 1 available u, 2 loading a, 3 available a                            | unload 1
        unloads if one serves though one failed    | 1 available u, 2 failed a, 3 available a                             | unload 1
        unloads the older of two stale ones        | 2 available u, 1 available u, 3 failed a, 4 loading a                | unload 1
        does not unload while the other warms up   | 1 available u, 2 warming a                                           | none
        loads before it unloads                    | 1 available u, 2 tracked a                                           | load 2
        """)
    void availabilityComesFirst(String row, String versions, String step) {
        assertThat(row).isNotEmpty();
        check(AspiredVersionPolicy.AVAILABILITY_PRESERVING, versions, step);
    }

    @ParameterizedTest(name = "{0}")
    @CsvSource(delimiter = '|', textBlock = """
        unloads the first unwanted one              | 1 unloading u, 2 available a, 3 available u, 4 tracked a, 5 available u | unload 3
        loads the newest when none is to be unloaded | 1 available a, 2 loading a, 3 tracked a, 4 gone u, 5 tracked a         | load 5
        does nothing when there is nothing to do    | 1 available a, 2 failed a, 3 loading a, 4 unloading u, 5 gone u         | none
        does not load while others are unloading    | 1 draining u, 2 tracked a                                               | none
        loads if the unwanted one failed            | 1 failed u, 2 tracked a                                                 | load 2
        a failed and a leaving one prevent loading  | 1 failed u, 2 draining u, 3 tracked a                                   | none
        a failed and an ended one allow loading     | 1 failed u, 2 gone u, 3 tracked a                                       | load 3
        """)
    void resourcesComeFirst(String row, String versions, String step) {
        assertThat(row).isNotEmpty();
        check(AspiredVersionPolicy.RESOURCE_PRESERVING, versions, step);
    }

    private static void check(AspiredVersionPolicy policy, String text, String expected) {
        List<VersionSnapshot> versions = new ArrayList<>();
        for (String one : text.split(",")) {
            String[] words = one.strip().split(" ");
            versions.add(new VersionSnapshot(
                    Long.parseLong(words[0]), Phase.valueOf(words[1].toUpperCase(Locale.ROOT)), words[2].equals("a")));
        }
        assertThat(describe(policy.next(versions), versions)).isEqualTo(expected);
        if (policy == AspiredVersionPolicy.AVAILABILITY_PRESERVING) {
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
