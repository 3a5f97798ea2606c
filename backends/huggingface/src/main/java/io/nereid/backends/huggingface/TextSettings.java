// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import io.nereid.backends.huggingface.graph.EncoderTask;
import io.nereid.backends.huggingface.task.AnswerStyle;
import io.nereid.backends.huggingface.task.TokenAnswers;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.TextTasks;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.parameters.LatencyObjective;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * The parameters in a model configuration; see {@link HuggingFaceBackend}. Immutable.
 *
 * @param task the task; null for that of the architecture
 * @param maxLength the maximum number of tokens; 0 for that of the folder
 * @param special whether tokens that mark begin and end are added
 * @param lowerCase whether texts are put in lower case first, or keep their case whatever the tokenizer says; null for what it says
 * @param style the form of the answers
 * @param strategy how tokens are joined
 * @param top the number of tokens for a mask
 * @param pairs whether two texts are classified together; null for what the folder says
 * @param normalize whether vectors are divided by their length where the folder does not say it
 * @param stride the tokens that two windows over a long text have in common; 0 for the usual number
 * @param runtime the parameters for ONNX Runtime
 */
record TextSettings(
        @Nullable EncoderTask task,
        int maxLength,
        boolean special,
        @Nullable Boolean lowerCase,
        AnswerStyle style,
        TokenAnswers.Strategy strategy,
        int top,
        @Nullable Boolean pairs,
        boolean normalize,
        int stride,
        Map<String, String> runtime) {
    private static final String TASK = "task";
    private static final String MAX_LENGTH = "max_length";
    private static final String SPECIAL = "add_special_tokens";
    private static final String LOWER_CASE = "do_lower_case";
    private static final String PROBABILITIES = "return_probabilities";
    private static final String LOGITS = "return_raw_logits";
    private static final String STRATEGY = "aggregation_strategy";
    private static final String TOP = "top_k";
    private static final String PAIRS = "text_pairs";
    private static final String NORMALIZE = "normalize";
    private static final String STRIDE = "doc_stride";
    private static final int MOST_LENGTH = 1 << 20;
    private static final int MOST_TOP = 1000;
    private static final int USUAL_TOP = 5;

    private static final List<String> KNOWN = List.of(
            TASK, MAX_LENGTH, SPECIAL, LOWER_CASE, PROBABILITIES, LOGITS, STRATEGY, TOP, PAIRS, NORMALIZE, STRIDE);
    /** What the scheduler and other parts of the server read. */
    private static final List<String> FOREIGN = List.of(
            DynamicBatching.ANTICIPATION,
            LatencyObjective.PARAMETER,
            ModelMetadata.KSERVE_SERVER,
            ModelMetadata.JSON_OUTPUTS,
            TextTasks.PROPERTY,
            "nereid.batch_id");

    private static final List<String> RUNTIME = List.of("intra_op_thread_count", "inter_op_thread_count");

    /** @throws ServingException INVALID_ARGUMENT for an unknown parameter or an invalid value */
    static TextSettings read(ModelConfig config) {
        Map<String, String> runtime = new TreeMap<>();
        config.parameters().forEach((key, value) -> {
            if (RUNTIME.contains(key) || key.startsWith("session.")) {
                runtime.put(key, value);
            } else if (!KNOWN.contains(key) && !FOREIGN.contains(key)) {
                throw ServingException.invalidArgument(
                        "unknown parameter '" + key + "' of model '" + config.name()
                                + "' (the huggingface backend knows " + String.join(", ", KNOWN) + ", "
                                + String.join(", ", RUNTIME) + ")",
                        NameSuggestions.didYouMean(key, KNOWN, "remove it"));
            }
        });
        String name = config.parameters().getOrDefault(TASK, "").strip();
        EncoderTask task = EncoderTask.ofName(name);
        if (!name.isEmpty() && task == null) {
            throw wrong(config, TASK, "one of " + String.join(", ", EncoderTask.names()));
        }
        boolean kserve = flag(config, ModelMetadata.KSERVE_SERVER, false);
        boolean probabilities = flag(config, PROBABILITIES, false);
        boolean logits = flag(config, LOGITS, false);
        return new TextSettings(
                task,
                number(config, MAX_LENGTH, 0, MOST_LENGTH),
                flag(config, SPECIAL, true),
                config.parameters().containsKey(LOWER_CASE) ? (Boolean) flag(config, LOWER_CASE, false) : null,
                // As in KServe's server, the logits win.
                logits
                        ? AnswerStyle.KSERVE_LOGITS
                        : probabilities
                                ? AnswerStyle.KSERVE_PROBABILITIES
                                : kserve ? AnswerStyle.KSERVE : AnswerStyle.PIPELINE,
                TokenAnswers.Strategy.of(
                        config.parameters().getOrDefault(STRATEGY, "simple").strip()),
                number(config, TOP, USUAL_TOP, MOST_TOP),
                config.parameters().containsKey(PAIRS) ? (Boolean) flag(config, PAIRS, false) : null,
                flag(config, NORMALIZE, true),
                number(config, STRIDE, 0, MOST_LENGTH),
                Map.copyOf(runtime));
    }

    /** These settings with another form of the answers. */
    TextSettings withStyle(AnswerStyle other) {
        return new TextSettings(
                task, maxLength, special, lowerCase, other, strategy, top, pairs, normalize, stride, runtime);
    }

    private static boolean flag(ModelConfig config, String key, boolean otherwise) {
        String text = config.parameters().getOrDefault(key, String.valueOf(otherwise));
        return switch (text.strip().toLowerCase(Locale.ROOT)) {
            case "true" -> true;
            case "false" -> false;
            default -> throw wrong(config, key, "true or false");
        };
    }

    private static int number(ModelConfig config, String key, int otherwise, int most) {
        String text = config.parameters().get(key);
        if (text == null) {
            return otherwise;
        }
        try {
            int value = Integer.parseInt(text.strip());
            if (value >= 1 && value <= most) {
                return value;
            }
        } catch (NumberFormatException e) {
            // Rejected below.
        }
        throw wrong(config, key, "a whole number from 1 to " + most);
    }

    private static ServingException wrong(ModelConfig config, String key, String expected) {
        return ServingException.invalidArgument(
                "model '" + config.name() + "' has " + key + " '"
                        + config.parameters().get(key) + "' (expected: " + expected + ")",
                "correct the parameter");
    }
}
