// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * A model's TensorFlow Lite settings, from its parameters and the backend's settings. Immutable.
 *
 * @param defaultMaxBatchSize the batch size limit of a model whose configuration does not set one; 0 for no batching
 * @param threads threads of one run
 * @param threadsGiven whether the configuration sets them
 * @param checkShapes whether requests must have the shapes of the file; else inputs are resized
 * @param xnnpack whether XNNPACK runs the operators that it has; else the built-in kernels run all of them
 */
record LiteSettings(int defaultMaxBatchSize, int threads, boolean threadsGiven, boolean checkShapes, boolean xnnpack) {
    private static final String DEFAULT_MAX_BATCH_SIZE = "default-max-batch-size";
    static final String THREADS = "num_threads";
    private static final String CHECK_SHAPES = "check-shapes";
    private static final String XNNPACK = "xnnpack";
    private static final List<String> SETTINGS = List.of(DEFAULT_MAX_BATCH_SIZE, THREADS, CHECK_SHAPES, XNNPACK);

    /** The names of the backend's settings. */
    static Set<String> names() {
        return Set.copyOf(SETTINGS);
    }

    /**
     * Reads a model's parameters and the backend's settings.
     *
     * @throws ServingException INVALID_ARGUMENT for an unknown setting or an invalid value
     */
    static LiteSettings read(Map<String, String> parameters, Map<String, String> settings) {
        for (String key : settings.keySet()) {
            if (!SETTINGS.contains(key)) {
                throw ServingException.invalidArgument(
                        "unknown setting '" + key + "' of the tflite backend (known: " + String.join(", ", SETTINGS)
                                + ")",
                        NameSuggestions.didYouMean(key, SETTINGS, "remove it"));
            }
        }
        return new LiteSettings(
                number(settings, DEFAULT_MAX_BATCH_SIZE, 4, 0),
                number(parameters, THREADS, number(settings, THREADS, 1, 1), 1),
                parameters.containsKey(THREADS) || settings.containsKey(THREADS),
                flag(CHECK_SHAPES, settings.getOrDefault(CHECK_SHAPES, "true"), "true", "false"),
                flag(XNNPACK, parameters.getOrDefault(XNNPACK, settings.getOrDefault(XNNPACK, "on")), "on", "off"));
    }

    private static boolean flag(String key, String text, String yes, String no) {
        String value = text.strip();
        if (!value.equals(yes) && !value.equals(no)) {
            throw ServingException.invalidArgument(
                    "'" + key + "' is '" + value + "' (expected: " + yes + " or " + no + ")");
        }
        return value.equals(yes);
    }

    private static int number(Map<String, String> from, String key, int otherwise, int least) {
        String text = from.get(key);
        if (text == null) {
            return otherwise;
        }
        try {
            int value = Integer.parseInt(text.strip());
            if (value >= least) {
                return value;
            }
        } catch (NumberFormatException e) {
            // Rejected below, like a number out of range.
        }
        throw ServingException.invalidArgument(
                "'" + key + "' is '" + text + "' (expected: a whole number >= " + least + ")");
    }
}
