// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.protobuf.ProtobufWriter;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/**
 * What is asked of the engine for one model. Immutable.
 *
 * @param defaultMaxBatchSize the most rows of a batch of a model that says nothing; 0 for no batching
 * @param checkShapes whether inputs that stand at placeholders must have the placeholder's shape
 * @param intraThreads threads of one operation; all models share those that the first one asked for
 * @param interThreads threads that a run spreads its operations over; -1 for the thread that brings the request
 * @param tag the tags of the graph, sorted; empty for the default
 * @param signature the signature that is the default one; empty for the usual rule
 */
record TfSettings(
        int defaultMaxBatchSize,
        boolean checkShapes,
        int intraThreads,
        int interThreads,
        Set<String> tag,
        String signature) {
    private static final String DEFAULT_MAX_BATCH_SIZE = "default-max-batch-size";
    private static final String CHECK_SHAPES = "check-shapes";
    private static final String INTRA = "intra_op_thread_count";
    private static final String INTER = "inter_op_thread_count";
    private static final String TAGS = "tags";
    private static final List<String> SETTINGS = List.of(DEFAULT_MAX_BATCH_SIZE, CHECK_SHAPES, INTRA, INTER, TAGS);

    /**
     * Reads a model's parameters, for which Triton's names hold, and the server's settings.
     *
     * @throws ServingException INVALID_ARGUMENT for one that is unknown or wrong
     */
    static TfSettings read(Map<String, String> parameters, Map<String, String> settings) {
        for (String key : settings.keySet()) {
            if (!SETTINGS.contains(key)) {
                throw ServingException.invalidArgument(
                        "unknown setting '" + key + "' of the tensorflow backend (known: " + String.join(", ", SETTINGS)
                                + ")",
                        NameSuggestions.didYouMean(key, SETTINGS, "remove it"));
            }
        }
        int intra = number(settings, INTRA, 1, 0);
        int inter = number(settings, INTER, -1, -1);
        String tags = parameters
                .getOrDefault("TF_GRAPH_TAG", settings.getOrDefault(TAGS, ""))
                .strip();
        return new TfSettings(
                number(settings, DEFAULT_MAX_BATCH_SIZE, 4, 0),
                yes(parameters, "TF_CHECK_SHAPES", yes(settings, CHECK_SHAPES, true)),
                number(parameters, "TF_NUM_INTRA_THREADS", intra, 0),
                number(parameters, "TF_NUM_INTER_THREADS", inter, -1),
                tags.isEmpty() ? Set.of() : new TreeSet<>(Arrays.asList(tags.split("\\s*,\\s*"))),
                parameters.getOrDefault("TF_SIGNATURE_DEF", "").strip());
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
            // Refused below, with the same words.
        }
        throw ServingException.invalidArgument(
                "'" + key + "' is '" + text + "' (expected: a whole number >= " + least + ")");
    }

    private static boolean yes(Map<String, String> from, String key, boolean otherwise) {
        String text = from.get(key);
        if (text == null) {
            return otherwise;
        }
        return switch (text.strip()) {
            case "true", "1" -> true;
            case "false", "0" -> false;
            default ->
                throw ServingException.invalidArgument("'" + key + "' is '" + text + "' (expected: true or false)");
        };
    }

    /** The engine's ConfigProto: threads within and between operations, and the processor where an operation has no other device. */
    byte[] config() {
        ProtobufWriter out = new ProtobufWriter();
        out.varintField(2, intraThreads);
        out.varintField(5, interThreads);
        out.varintField(7, 1);
        return Arrays.copyOf(out.array(), out.length());
    }
}
