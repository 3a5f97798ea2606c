// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class ModelTraitsTest {
    @Test
    void theDefaultsPromiseNothing() {
        ModelTraits traits = ModelTraits.DEFAULT;
        assertThat(traits.inputAlignment()).isEqualTo(1);
        assertThat(traits.cancellable()).isFalse();
        assertThat(traits.inline()).isFalse();
        assertThat(traits.takesRequests()).isFalse();
        assertThat(traits.takesTables()).isFalse();
        assertThat(traits.blocking()).isFalse();
    }

    @Test
    void everyValueIsSetByItself() {
        assertThat(ModelTraits.builder().inputAlignment(64).build().inputAlignment())
                .isEqualTo(64);
        assertThat(ModelTraits.builder().cancellable(true).build())
                .satisfies(t -> assertThat(t.cancellable()).isTrue())
                .satisfies(t -> assertThat(t.inline()).isFalse());
        assertThat(ModelTraits.builder().inline(true).build())
                .satisfies(t -> assertThat(t.inline()).isTrue())
                .satisfies(t -> assertThat(t.cancellable()).isFalse());
        assertThat(ModelTraits.builder().takesRequests(true).build())
                .satisfies(t -> assertThat(t.takesRequests()).isTrue())
                .satisfies(t -> assertThat(t.takesTables()).isFalse());
        assertThat(ModelTraits.builder().takesTables(true).build())
                .satisfies(t -> assertThat(t.takesTables()).isTrue())
                .satisfies(t -> assertThat(t.blocking()).isFalse());
        assertThat(ModelTraits.builder().blocking(true).build())
                .satisfies(t -> assertThat(t.blocking()).isTrue())
                .satisfies(t -> assertThat(t.takesRequests()).isFalse());
    }

    @Test
    void aBuilderOfTraitsKeepsTheirValues() {
        ModelTraits all = ModelTraits.builder()
                .inputAlignment(16)
                .cancellable(true)
                .inline(true)
                .takesRequests(true)
                .takesTables(true)
                .blocking(true)
                .build();
        assertThat(all.toBuilder().build()).usingRecursiveComparison().isEqualTo(all);
    }
}
