// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

class CommandLineArgumentsTest {
    private static final List<String> ARGS =
            List.of("serve", "--model-name=iris", "--http_port", "8080", "--debug", "--", "--http_port=9");

    @Test
    void valuesAreReadByNameAsWrittenAndTheLastOneWins() {
        assertThat(CommandLineArguments.of(ARGS))
                .isEqualTo(Map.of("model-name", "iris", "http_port", "9", "debug", "true"));
    }

    @Test
    void normalizedNamesHaveUnderscores() {
        assertThat(CommandLineArguments.normalized(ARGS)).containsEntry("model_name", "iris");
    }

    @Test
    void aBareDoubleDashDoesNotTakeTheNextWordAsItsValue() {
        assertThat(CommandLineArguments.of(List.of("--", "file", "--a=b"))).isEqualTo(Map.of("a", "b"));
    }

    @Test
    void namedArgumentsAreRemovedWithTheirValues() {
        assertThat(CommandLineArguments.without(ARGS, Set.of("http_port", "debug")))
                .containsExactly("serve", "--model-name=iris", "--");
    }

    @Test
    void aValueIsReplacedInTheFormThatItIsWrittenIn() {
        assertThat(CommandLineArguments.with(ARGS, "http_port", "1"))
                .containsExactly("serve", "--model-name=iris", "--http_port", "1", "--debug", "--", "--http_port=1");
        assertThat(CommandLineArguments.with(ARGS, "model_name", "m")).contains("--model-name=m");
        assertThat(CommandLineArguments.with(ARGS, "debug", "x")).isEqualTo(ARGS);
    }
}
