// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.task;

import io.nereid.backends.tokenizer.NativeTokenizer.Encoding;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A text, or a pair of texts, on its way through the model. Confined to one run. */
public final class TextRow {
    private final String text;
    private final @Nullable String pair;
    private final Encoding encoding;
    private final int padded;
    private final List<TextRow> further;
    private float[] result = {};

    /** Creates a row without further windows. */
    public TextRow(String text, @Nullable String pair, Encoding encoding, int padded) {
        this(text, pair, encoding, padded, List.of());
    }

    /**
     * Creates a row.
     *
     * @param padded the number of tokens of the longest row of the same request
     * @param further the windows after this one over a pair with more tokens than the model takes
     */
    public TextRow(String text, @Nullable String pair, Encoding encoding, int padded, List<TextRow> further) {
        this.further = List.copyOf(further);
        this.text = text;
        this.pair = pair;
        this.encoding = encoding;
        this.padded = padded;
    }

    /** The text. */
    public String text() {
        return text;
    }

    /** The second text; null when there is none. */
    public @Nullable String pair() {
        return pair;
    }

    /** Its tokens, without padding. */
    public Encoding encoding() {
        return encoding;
    }

    /** The number of its tokens. */
    public int tokens() {
        return encoding.ids().length;
    }

    /** The number of tokens of the longest row of the same request. */
    public int padded() {
        return padded;
    }

    /** The windows after this one over the same pair, which have no further ones. */
    public List<TextRow> further() {
        return further;
    }

    /**
     * The model's numbers: of the row, or of its tokens, or of its masked tokens, one after the other. Those of padding follow, if they
     * were kept.
     */
    public float[] result() {
        return result;
    }

    /** Sets the model's numbers, which this object owns from here on. */
    public void result(float[] numbers) {
        this.result = numbers;
    }
}
