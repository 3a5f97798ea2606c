// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.task;

import io.nereid.backends.tokenizer.NativeTokenizer.Encoding;
import org.jspecify.annotations.Nullable;

/** A text, or a pair of texts, on its way through the model. Confined to one run. */
public final class TextRow {
    private final String text;
    private final @Nullable String pair;
    private final Encoding encoding;
    private final int padded;
    private float[] result = {};

    /** @param padded the number of tokens of the longest row of the same request */
    public TextRow(String text, @Nullable String pair, Encoding encoding, int padded) {
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
