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
 * A model's TensorFlow settings, from its parameters and the backend's settings. Immutable.
 *
 * @param defaultMaxBatchSize the batch size limit of a model whose configuration does not set one; 0 for no batching
 * @param checkShapes whether inputs that are placeholders must have the placeholder's shape
 * @param intraThreads threads of one operation; TensorFlow has one such pool per process, sized by the first model
 * @param interThreads threads that run operations in parallel; -1 to run all of them on the calling thread
 * @param tag the tags of the graph to load, sorted; empty for the default
 * @param signature the name of the default signature; empty to choose it from the model
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

    /** The names of the backend's settings. */
    static Set<String> names() {
        return Set.copyOf(SETTINGS);
    }

    /**
     * Reads a model's parameters, which have Triton's names, and the backend's settings.
     *
     * @throws ServingException INVALID_ARGUMENT for an unknown setting or an invalid value
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
            // Rejected below, like a number out of range.
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

    /**
     * The session's serialised {@code ConfigProto}: intra_op_parallelism_threads = 2, inter_op_parallelism_threads = 5,
     * allow_soft_placement = 7 (operations without a kernel for their device run on the CPU).
     */
    byte[] config() {
        ProtobufWriter out = new ProtobufWriter();
        out.varintField(2, intraThreads);
        out.varintField(5, interThreads);
        out.varintField(7, 1);
        return Arrays.copyOf(out.array(), out.length());
    }
}
