// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

/**
 * How protocols of texts find their models and call them: names of a property of {@link ModelMetadata} and of parameters. The texts are
 * BYTES inputs with one element in each row.
 */
public final class TextTasks {
    /**
     * The parameter of a configuration, and the property, of a model that such protocols may call: {@link #EMBED} or {@link #RERANK}.
     */
    public static final String PROPERTY = "nereid.text_task";

    /** One input of texts, and a vector of FP32 or FP64 for each. */
    public static final String EMBED = "embed";

    /** Two inputs, queries and documents, and a number of FP32 or FP64 for each pair; larger for a better match. */
    public static final String RERANK = "rerank";

    /** The parameter of a request, {@code true}, for a response with {@link #TOKENS}, if the model counts them. */
    public static final String COUNT_TOKENS = "nereid.count_tokens";

    /**
     * The parameter of a request, {@code true}, whose texts are tokens: their numbers in the model's vocabulary, in decimal digits and
     * separated by spaces. The model adds none. A model without tokens rejects it.
     */
    public static final String TOKEN_IDS = "nereid.token_ids";

    /** The parameter of a response: the number of tokens of all its texts as the model read them, a Long. */
    public static final String TOKENS = "nereid.tokens";

    private TextTasks() {}
}
