// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

class SuggestionsTest {
    private static final List<String> KNOWN = List.of("max_batch_size", "name", "dynamic_batching", "input", "output");

    @Test
    void theNearestNamesComeFirstAndFarOnesNotAtAll() {
        assertThat(Suggestions.nearest("max_batch_sise", KNOWN)).containsExactly("max_batch_size");
        assertThat(Suggestions.nearest("nmae", KNOWN)).containsExactly("name");
        assertThat(Suggestions.nearest("colour", KNOWN)).isEmpty();
        assertThat(Suggestions.didYouMean("inptu", KNOWN, "")).isEqualTo("did you mean 'input'?");
        assertThat(Suggestions.didYouMean("zzz", KNOWN, "see the list")).isEqualTo("see the list");
    }
}
