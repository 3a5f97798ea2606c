// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

class NameSuggestionsTest {
    private static final List<String> KNOWN = List.of("max_batch_size", "name", "dynamic_batching", "input", "output");

    @Test
    void theNearestNamesComeFirstAndFarOnesNotAtAll() {
        assertThat(NameSuggestions.nearest("max_batch_sise", KNOWN)).containsExactly("max_batch_size");
        assertThat(NameSuggestions.nearest("nmae", KNOWN)).containsExactly("name");
        assertThat(NameSuggestions.nearest("colour", KNOWN)).isEmpty();
        assertThat(NameSuggestions.didYouMean("inptu", KNOWN, "")).isEqualTo("did you mean 'input'?");
        assertThat(NameSuggestions.didYouMean("zzz", KNOWN, "see the list")).isEqualTo("see the list");
    }
}
