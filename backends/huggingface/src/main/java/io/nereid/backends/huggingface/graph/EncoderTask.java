// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.graph;

import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** What an encoder is used for, with the names of KServe's Hugging Face server and of transformers' pipelines. */
public enum EncoderTask {
    SEQUENCE_CLASSIFICATION("ForSequenceClassification", "text-classification"),
    TOKEN_CLASSIFICATION("ForTokenClassification", "token-classification"),
    FILL_MASK("ForMaskedLM", "fill-mask"),
    QUESTION_ANSWERING("ForQuestionAnswering", "question-answering"),
    TEXT_EMBEDDING("Model", "feature-extraction");

    private final String ending;
    private final String pipeline;

    EncoderTask(String ending, String pipeline) {
        this.ending = ending;
        this.pipeline = pipeline;
    }

    /** The task of an architecture such as {@code BertForMaskedLM}; null for one that this server does not run. */
    public static @Nullable EncoderTask ofArchitecture(String architecture) {
        // A model of ALBERT, BERT or ELECTRA as it was trained: its head predicts masked tokens.
        String name = architecture.endsWith("ForPreTraining") && !architecture.startsWith("Electra")
                ? architecture.replace("ForPreTraining", FILL_MASK.ending)
                : architecture;
        for (EncoderTask task : values()) {
            if (name.endsWith(task.ending)) {
                return task;
            }
        }
        return null;
    }

    /** The task of a name such as {@code fill_mask} or {@code fill-mask}; null for an unknown one. */
    public static @Nullable EncoderTask ofName(String name) {
        String lower = name.toLowerCase(Locale.ROOT);
        for (EncoderTask task : values()) {
            if (task.text().equals(lower) || task.pipeline.equals(lower)) {
                return task;
            }
        }
        return null;
    }

    /** The name in KServe's server, such as {@code fill_mask}. */
    public String text() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** The name of transformers' pipeline, such as {@code fill-mask}. */
    public String pipeline() {
        return pipeline;
    }

    /** All names. */
    public static List<String> names() {
        return Stream.of(values()).map(EncoderTask::text).toList();
    }
}
