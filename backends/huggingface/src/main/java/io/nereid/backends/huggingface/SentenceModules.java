// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import io.nereid.backends.huggingface.graph.SentenceStep;
import io.nereid.backends.huggingface.weights.Checkpoint;
import io.nereid.base.ServingException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The {@code modules.json} of a sentence-transformers folder: the encoder and what follows it. Immutable.
 *
 * @param encoder the folder of the encoder
 * @param steps what follows the encoder
 * @param maxLength the maximum number of tokens that the folder configures; 0 for none
 * @param lowerCase whether texts are put in lower case before the tokenizer sees them
 * @param prompt what is put before each text; empty for nothing
 */
record SentenceModules(Path encoder, List<SentenceStep> steps, int maxLength, boolean lowerCase, String prompt) {
    private static final int MOST_WIDTH = 1 << 20;

    /** Older names of the ways to pool. */
    private static final Map<String, String> MODES = Map.of(
            "pooling_mode_cls_token", "cls",
            "pooling_mode_max_tokens", "max",
            "pooling_mode_mean_tokens", "mean",
            "pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens",
            "pooling_mode_weightedmean_tokens", "weightedmean",
            "pooling_mode_lasttoken", "lasttoken");
    /** The order in which vectors are joined where a folder has several ways. */
    private static final List<String> ORDER = List.of(
            "pooling_mode_cls_token",
            "pooling_mode_max_tokens",
            "pooling_mode_mean_tokens",
            "pooling_mode_mean_sqrt_len_tokens",
            "pooling_mode_weightedmean_tokens",
            "pooling_mode_lasttoken");

    /** Reads a folder; null when it is not one of sentence-transformers. */
    static @Nullable SentenceModules read(Path folder) {
        Path file = folder.resolve("modules.json");
        List<?> modules = FolderFile.list(file);
        if (modules == null) {
            return null;
        }
        Path encoder = null;
        List<SentenceStep> steps = new ArrayList<>();
        for (Object module : modules) {
            if (!(module instanceof Map<?, ?> fields)
                    || !(fields.get("type") instanceof String type)
                    || !(fields.get("path") instanceof String path)
                    || path.indexOf('\0') >= 0) {
                throw FolderFile.rejected(file, "a module lacks its type or path");
            }
            Path own = folder.resolve(path).normalize();
            if (!own.startsWith(folder.normalize())) {
                throw FolderFile.rejected(file, "it names the path '" + path + "' outside its folder");
            }
            String name = type.substring(type.lastIndexOf('.') + 1);
            if (encoder == null && !name.equals("Transformer")) {
                throw FolderFile.rejected(file, "its first module is of type '" + type + "' (expected: Transformer)");
            }
            switch (name) {
                case "Transformer" -> encoder = own;
                case "Pooling" -> steps.add(pooling(own.resolve("config.json")));
                case "Normalize" -> steps.add(new SentenceStep.Normalize());
                case "Dense" -> steps.add(dense(own));
                case "Dropout" -> {
                    // Does nothing when a model is used.
                }
                default ->
                    throw FolderFile.rejected(
                            file,
                            "it has a module of type '" + type
                                    + "' (expected: Transformer, Pooling, Dense, Normalize or Dropout)");
            }
        }
        if (encoder == null || steps.isEmpty() || !(steps.get(0) instanceof SentenceStep.Pool)) {
            throw FolderFile.rejected(file, "it has no Transformer followed by a Pooling module");
        }
        Map<?, ?> settings = FolderFile.object(encoder.resolve("sentence_bert_config.json"));
        int most = settings != null && settings.get("max_seq_length") instanceof Long n && n > 0 && n < MOST_WIDTH
                ? n.intValue()
                : 0;
        boolean lower = settings != null && Boolean.TRUE.equals(settings.get("do_lower_case"));
        return new SentenceModules(encoder, List.copyOf(steps), most, lower, prompt(folder));
    }

    private static String prompt(Path folder) {
        Map<?, ?> settings = FolderFile.object(folder.resolve("config_sentence_transformers.json"));
        if (settings == null
                || !(settings.get("default_prompt_name") instanceof String name)
                || !(settings.get("prompts") instanceof Map<?, ?> prompts)) {
            return "";
        }
        return prompts.get(name) instanceof String prompt ? prompt : "";
    }

    private static SentenceStep pooling(Path file) {
        Map<?, ?> fields = required(file);
        if (Boolean.FALSE.equals(fields.get("include_prompt"))) {
            throw FolderFile.rejected(file, "it has include_prompt false, which is not supported (expected: true)");
        }
        List<String> modes = new ArrayList<>();
        if (fields.get("pooling_mode") instanceof String mode) {
            modes.addAll(List.of(mode.split("\\+", -1)));
        } else if (fields.get("pooling_mode") instanceof List<?> several) {
            several.forEach(m -> modes.add(String.valueOf(m)));
        } else {
            for (String key : ORDER) {
                if (Boolean.TRUE.equals(fields.get(key))) {
                    modes.add(String.valueOf(MODES.get(key)));
                }
            }
        }
        if (modes.isEmpty() || !MODES.values().containsAll(modes)) {
            throw FolderFile.rejected(
                    file,
                    "it has the pooling modes " + modes + " (expected: some of "
                            + MODES.values().stream().sorted().toList() + ")");
        }
        return new SentenceStep.Pool(modes);
    }

    private static SentenceStep dense(Path folder) {
        Path file = folder.resolve("config.json");
        Map<?, ?> fields = required(file);
        if (!(fields.get("in_features") instanceof Long in)
                || !(fields.get("out_features") instanceof Long out)
                || in < 1
                || out < 1
                || in > MOST_WIDTH
                || out > MOST_WIDTH) {
            throw FolderFile.rejected(
                    file, "its in_features or out_features is not a whole number from 1 to " + MOST_WIDTH);
        }
        String type = fields.get("activation_function") instanceof String s ? s : "torch.nn.modules.activation.Tanh";
        String function = switch (type.substring(type.lastIndexOf('.') + 1)) {
            case "Identity" -> "identity";
            case "Tanh" -> "tanh";
            case "ReLU" -> "relu";
            case "GELU" -> "gelu";
            case "Sigmoid" -> "sigmoid";
            case "SiLU" -> "silu";
            default ->
                throw FolderFile.rejected(
                        file,
                        "it has the activation_function '" + type
                                + "' (expected: Identity, Tanh, ReLU, GELU, Sigmoid or SiLU of torch)");
        };
        return new SentenceStep.Dense(
                Checkpoint.open(folder),
                in.intValue(),
                out.intValue(),
                !Boolean.FALSE.equals(fields.get("bias")),
                function);
    }

    private static Map<?, ?> required(Path file) {
        Map<?, ?> fields = FolderFile.object(file);
        if (fields == null) {
            throw ServingException.invalidArgument(
                    "unable to find '" + file + "', which modules.json names", "copy the whole folder");
        }
        return fields;
    }
}
