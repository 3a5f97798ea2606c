// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.graph;

import io.nereid.backends.huggingface.weights.Checkpoint;
import java.util.List;

/** A module of sentence-transformers after the encoder. */
public sealed interface SentenceStep {
    /**
     * Makes one vector of the vectors of all tokens.
     *
     * @param modes {@code cls}, {@code mean}, {@code max}, {@code mean_sqrt_len_tokens}, {@code weightedmean} or {@code lasttoken};
     *     the vectors of several are joined
     */
    record Pool(List<String> modes) implements SentenceStep {
        /** Creates a step with its own copy of the modes. */
        public Pool {
            modes = List.copyOf(modes);
        }
    }

    /** A linear layer with an activation function. */
    record Dense(Checkpoint weights, int in, int out, boolean bias, String activation) implements SentenceStep {}

    /** Divides each vector by its length. */
    record Normalize() implements SentenceStep {}
}
