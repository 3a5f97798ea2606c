// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.inprocess;

import io.nereid.base.ServingException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * The arguments of KServe's Hugging Face server as parameters of the backend {@code huggingface}. Each is honoured, or named as one
 * without an effect on the answers, or refused with what to do instead. Stateless.
 *
 * <p>Source: the help text of KServe's {@code huggingfaceserver}.
 */
final class TextArguments {
    private static final Map<String, String> PARAMETERS = Map.of(
            "task", "task",
            "max_length", "max_length",
            "max_model_len", "max_length",
            "return_probabilities", "return_probabilities",
            "return_raw_logits", "return_raw_logits",
            "add_special_tokens", "add_special_tokens");

    /** Flags that switch off what a parameter switches on. */
    private static final Map<String, String> OPPOSITES =
            Map.of("disable_special_tokens", "add_special_tokens", "disable_lower_case", "do_lower_case");

    /** Why an argument does not change the answers. */
    private static final Map<String, String> NO_EFFECT = Map.of(
            "trust_remote_code", "no code of a model's folder runs in this server",
            "disable_log_requests", "texts are not logged",
            "max_log_len", "texts are not logged",
            "return_token_type_ids", "the graph has the inputs that its architecture needs",
            "tensor_input_names", "the graph has the inputs that its architecture needs");

    private static final Set<String> GENERATIVE =
            Set.of("text_generation", "text2text_generation", "time_series_forecast");
    private static final Set<String> EXACT = Set.of("auto", "float32", "float");
    private static final Set<String> SHORTER = Set.of("float16", "half", "bfloat16");
    private static final String WAY_OUT =
            "in a cluster KServe's own server serves it: set runtime: kserve-huggingfaceserver in the model of the"
                    + " service, or the annotation nereid.io/serving-engine: kserve";

    private TextArguments() {}

    /**
     * Adds the parameters of the model.
     *
     * @param options the arguments by their normalized names
     * @param warnings receives a sentence for each argument without an effect
     * @return the other arguments
     * @throws ServingException INVALID_ARGUMENT for an argument that this server cannot honour
     */
    static Map<String, String> take(
            Map<String, String> options, Map<String, String> parameters, List<String> warnings) {
        Map<String, String> others = new LinkedHashMap<>();
        options.forEach((option, value) -> {
            String text = value.isEmpty() ? "true" : value.strip(); // An option without a value is a flag.
            String why = NO_EFFECT.get(option);
            if (option.equals("task") && GENERATIVE.contains(text.toLowerCase(Locale.ROOT))) {
                throw ServingException.invalidArgument(
                        "the argument --task is '" + text
                                + "', which this server does not run (expected: the task of an encoder, such as"
                                + " sequence_classification, token_classification, fill_mask or text_embedding)",
                        WAY_OUT);
            } else if (PARAMETERS.containsKey(option)) {
                parameters.put(PARAMETERS.getOrDefault(option, option), text);
            } else if (OPPOSITES.containsKey(option)) {
                parameters.put(OPPOSITES.getOrDefault(option, option), String.valueOf(text.equalsIgnoreCase("false")));
            } else if (why != null) {
                warnings.add("the argument --" + option + " has no effect: " + why);
            } else if (option.equals("dtype")) {
                dtype(text, warnings);
            } else if (option.equals("backend")) {
                backend(text);
            } else if (option.equals("tokenizer_revision")) {
                // Files that are there already have no revision.
                String revision =
                        options.getOrDefault("model_revision", options.containsKey("model_id") ? "main" : text);
                if (!text.equals(revision)) {
                    throw ServingException.invalidArgument(
                            "the argument --tokenizer_revision is '" + text + "' (expected: that of --model_revision, '"
                                    + revision + "': the tokenizer is that of the model's folder)",
                            "leave it out, or put the tokenizer's files into the folder of the model");
                }
            } else if (option.startsWith("predictor_")) {
                throw ServingException.invalidArgument(
                        "the argument --" + option + " makes KServe's server a transformer in front of another one",
                        "leave it out: this server runs the model itself");
            } else if (!option.equals("model_id") && !option.equals("model_revision")) {
                others.put(option, value);
            }
        });
        return others;
    }

    private static void dtype(String text, List<String> warnings) {
        String type = text.toLowerCase(Locale.ROOT);
        if (SHORTER.contains(type)) {
            warnings.add("the argument --dtype=" + text
                    + " has no effect: the model is computed in FP32, whose answers are at least as exact");
        } else if (!EXACT.contains(type)) {
            throw ServingException.invalidArgument(
                    "the argument --dtype is '" + text
                            + "' (expected: auto, float32, float, float16, half or bfloat16)",
                    "correct it, or leave it out");
        }
    }

    private static void backend(String text) {
        String name = text.toLowerCase(Locale.ROOT);
        if (name.equals("vllm")) {
            throw ServingException.invalidArgument(
                    "the argument --backend is 'vllm', which this server does not have (expected: auto or huggingface)",
                    WAY_OUT);
        }
        if (!name.equals("auto") && !name.equals("huggingface")) {
            throw ServingException.invalidArgument(
                    "the argument --backend is '" + text + "' (expected: auto or huggingface)",
                    "leave it out: ONNX Runtime runs the model");
        }
    }
}
