// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How a configuration's inputs and outputs map to the arguments and returned values of the {@code forward} method.
 * Immutable.
 *
 * @param style how inputs are passed
 * @param slots the arguments, for {@link Style#ARGUMENTS}
 * @param feeds the inputs in the order of the list, for {@link Style#LIST}; else empty
 * @param answers the returned values, by output
 * @param mutates whether the code changes tensors in place. Then inputs are copied, and results are not viewed
 */
record ArgumentBinding(
        Style style, List<Slot> slots, List<String> feeds, Map<String, Answer> answers, boolean mutates) {
    /** How inputs are passed to the method. */
    enum Style {
        /** Each input as an argument. */
        ARGUMENTS,
        /** All inputs in one dict, by name. */
        DICT,
        /** All inputs in one list. */
        LIST
    }

    /**
     * An argument.
     *
     * @param name its name, for messages
     * @param feed the name of its input; null when the configuration does not have one
     * @param value the type that the input is converted to
     * @param constant the value when the input is left out: Long, Double, Boolean or String; null for None
     * @param required whether the input cannot be left out
     * @param defaulted whether the method declares a default, which libtorch uses when the argument is left out
     */
    record Slot(
            String name,
            @Nullable String feed,
            TorchType value,
            @Nullable Object constant,
            boolean required,
            boolean defaulted) {}

    /**
     * The position of an output in the returned value.
     *
     * @param key its key in a dict; null if a dict is not returned
     * @param index its index in a tuple or list; -1 for the whole value
     */
    record Answer(@Nullable String key, int index) {}
}
