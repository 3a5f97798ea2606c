// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import java.util.List;
import java.util.Map;

/**
 * What is asked of the engine. Immutable.
 *
 * @param intraThreads threads of one operation, for the whole process; 0 when nothing is said
 * @param interThreads threads for what code forks, for the whole process, from its start on
 * @param optimize whether the engine may rewrite code after it has seen it run
 */
record PtSettings(int intraThreads, int interThreads, boolean optimize) {
    private static final String INTRA = "intra_op_thread_count";
    private static final String INTER = "inter_op_thread_count";
    private static final List<String> SETTINGS = List.of(INTRA, INTER);

    /** Of Triton's parameters those that ask for what this engine does not do. */
    private static final List<String> REFUSED = List.of(
            "ENABLE_JIT_PROFILING",
            "ENABLE_JIT_EXECUTOR",
            "ENABLE_TENSOR_FUSER",
            "ENABLE_NVFUSER",
            "ENABLE_TORCH_COMPILE",
            "TORCH_COMPILE_OPTIONAL_PARAMETERS");

    /**
     * Reads a model's parameters, for which Triton's names hold, and the server's settings.
     *
     * @throws ServingException INVALID_ARGUMENT for one that is wrong, or cannot be honoured
     */
    static PtSettings read(Map<String, String> parameters, Map<String, String> settings) {
        for (String key : settings.keySet()) {
            if (!SETTINGS.contains(key)) {
                throw ServingException.invalidArgument(
                        "unknown setting '" + key + "' of the pytorch backend (known: " + String.join(", ", SETTINGS)
                                + ")",
                        NameSuggestions.didYouMean(key, SETTINGS, "remove it"));
            }
        }
        for (String key : REFUSED) {
            if (yes(parameters, key, false)) {
                throw ServingException.invalidArgument(
                        "the parameter '" + key + "' asks for what this engine does not do",
                        "remove it; see docs/FORMATS.md for the parameters that are honoured");
            }
        }
        int inter = number(settings, INTER, 1);
        if (number(parameters, "INTER_OP_THREAD_COUNT", inter) != inter) {
            throw ServingException.invalidArgument(
                    "the parameter 'INTER_OP_THREAD_COUNT' is " + parameters.get("INTER_OP_THREAD_COUNT")
                            + ", the process has " + inter,
                    "the number holds for the whole process: set it with --backend-config pytorch," + INTER + "=N");
        }
        // Gradients are never computed, and weights always shared, so that these change nothing.
        yes(parameters, "INFERENCE_MODE", true);
        yes(parameters, "ENABLE_WEIGHT_SHARING", true);
        yes(parameters, "ENABLE_CACHE_CLEANING", false);
        return new PtSettings(
                number(parameters, "INTRA_OP_THREAD_COUNT", number(settings, INTRA, 0)),
                inter,
                !yes(parameters, "DISABLE_OPTIMIZED_EXECUTION", false));
    }

    private static int number(Map<String, String> from, String key, int otherwise) {
        String text = from.get(key);
        if (text == null) {
            return otherwise;
        }
        try {
            int value = Integer.parseInt(text.strip());
            if (value >= 1) {
                return value;
            }
        } catch (NumberFormatException e) {
            // Refused below, with the same words.
        }
        throw ServingException.invalidArgument("'" + key + "' is '" + text + "' (expected: a whole number >= 1)");
    }

    private static boolean yes(Map<String, String> from, String key, boolean otherwise) {
        String text = from.get(key);
        if (text == null) {
            return otherwise;
        }
        return switch (text.strip()) {
            case "true", "1" -> true;
            case "false", "0", "" -> false;
            default ->
                throw ServingException.invalidArgument("'" + key + "' is '" + text + "' (expected: true or false)");
        };
    }
}
