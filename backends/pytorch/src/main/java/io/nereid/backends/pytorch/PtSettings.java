// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * A model's PyTorch settings, from its parameters and the backend's settings. Immutable.
 *
 * @param intraThreads threads of one operation; 0 when not set
 * @param interThreads threads for tasks that TorchScript code forks, for the whole process; fixed at the start
 * @param optimize whether the TorchScript executor may optimise code after profiling its first runs
 */
record PtSettings(int intraThreads, int interThreads, boolean optimize) {
    private static final String INTRA = "intra_op_thread_count";
    static final String INTRA_OF_MODEL = "INTRA_OP_THREAD_COUNT";
    private static final String INTER = "inter_op_thread_count";
    private static final List<String> SETTINGS = List.of(INTRA, INTER);

    /** Triton's parameters that turn on features which this backend does not have. */
    private static final List<String> UNSUPPORTED = List.of(
            "ENABLE_JIT_PROFILING",
            "ENABLE_JIT_EXECUTOR",
            "ENABLE_TENSOR_FUSER",
            "ENABLE_NVFUSER",
            "ENABLE_TORCH_COMPILE",
            "TORCH_COMPILE_OPTIONAL_PARAMETERS");

    /** The names of the backend's settings. */
    static Set<String> names() {
        return Set.copyOf(SETTINGS);
    }

    /**
     * Reads a model's parameters, which have Triton's names, and the backend's settings.
     *
     * @throws ServingException INVALID_ARGUMENT for an invalid value or an unsupported parameter
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
        for (String key : UNSUPPORTED) {
            if (yes(parameters, key, false)) {
                throw ServingException.invalidArgument(
                        "the parameter '" + key + "' is not supported by the pytorch backend",
                        "remove it; see docs/FORMATS.md for the supported parameters");
            }
        }
        int inter = number(settings, INTER, 1);
        if (number(parameters, "INTER_OP_THREAD_COUNT", inter) != inter) {
            throw ServingException.invalidArgument(
                    "the parameter 'INTER_OP_THREAD_COUNT' is " + parameters.get("INTER_OP_THREAD_COUNT")
                            + ", the process has " + inter,
                    "the number applies to the whole process: set it with --backend-config pytorch," + INTER + "=N");
        }
        // Read for validation only: gradients are never computed and weights are always shared.
        yes(parameters, "INFERENCE_MODE", true);
        yes(parameters, "ENABLE_WEIGHT_SHARING", true);
        yes(parameters, "ENABLE_CACHE_CLEANING", false);
        return new PtSettings(
                number(parameters, INTRA_OF_MODEL, number(settings, INTRA, 0)),
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
            // Rejected below, like a number out of range.
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
