// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How a configuration's tensors are a method's arguments and answers. Immutable.
 *
 * @param style how inputs are handed over
 * @param slots the arguments, for {@link Style#ARGUMENTS}
 * @param feeds the inputs in the order of the list, else empty
 * @param answers by output
 * @param mutates whether the code changes tensors in place, so that neither clients' memory nor the model's is shown to it
 */
record Wiring(Style style, List<Slot> slots, List<String> feeds, Map<String, Answer> answers, boolean mutates) {
    /** How inputs are handed over. */
    enum Style {
        /** Each as an argument. */
        ARGUMENTS,
        /** All in one dict by name. */
        DICT,
        /** All in one list. */
        LIST
    }

    /**
     * One argument.
     *
     * @param name its name, for messages
     * @param feed the input; null for none
     * @param value what the input becomes
     * @param constant what stands there without the input: Long, Double, Boolean or String; null for None
     * @param required whether it cannot be left out
     * @param defaulted whether the engine has a default of its own for it
     */
    record Slot(
            String name,
            @Nullable String feed,
            Value value,
            @Nullable Object constant,
            boolean required,
            boolean defaulted) {}

    /**
     * Where an output is found in what the method gives.
     *
     * @param key in a dict; null for no dict
     * @param index in a tuple or list; -1 for the whole
     */
    record Answer(@Nullable String key, int index) {}
}
