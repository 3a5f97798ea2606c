// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import io.nereid.backends.tokenizer.NativeTokenizer.Encoding;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Cuts a pair of texts that has more tokens than a model takes into windows: each has the whole first text and a part of the second,
 * and the parts overlap. The tokenizers library cuts in the same places, but it ends the process where the first text leaves no more
 * than the overlap. Stateless.
 */
final class TextWindows {
    /** A small request may not cost many runs. */
    private static final int MOST = 1024;

    private TextWindows() {}

    /**
     * @param whole all tokens, with those that mark begin and end
     * @param length the maximum number of tokens of a window
     * @param stride the number of tokens of the second text that a window has in common with the one before
     * @throws ServingException INVALID_ARGUMENT when the first text is too long, or the second needs too many windows
     */
    static List<Encoding> cut(Encoding whole, int length, int stride) {
        int all = whole.ids().length;
        if (all <= length) {
            return List.of(whole);
        }
        int begin = 0;
        while (begin < all && whole.texts()[begin] != 1) {
            begin++;
        }
        int end = begin;
        while (end < all && whole.texts()[end] == 1) {
            end++;
        }
        int part = length - begin - (all - end);
        if (part <= stride) {
            throw ServingException.invalidArgument(
                    "the first text leaves " + Math.max(0, part) + " of " + length
                            + " tokens for the second (expected: more than doc_stride, " + stride + ")",
                    "send a shorter first text, or set the parameter doc_stride");
        }
        int count = 1 + (end - begin - stride - 1) / (part - stride);
        if (count > MOST) {
            throw ServingException.invalidArgument(
                    "the second text has " + (end - begin) + " tokens, and needs " + count
                            + " windows (expected: at most " + MOST + ")",
                    "send a part of it, or set the parameter doc_stride");
        }
        List<Encoding> windows = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            int from = begin + i * (part - stride);
            windows.add(window(whole, begin, from, Math.min(from + part, end), end));
        }
        return windows;
    }

    private static Encoding window(Encoding whole, int begin, int from, int to, int end) {
        int all = whole.ids().length;
        int[] places = new int[begin + (to - from) + (all - end)];
        for (int i = 0; i < places.length; i++) {
            int in = i - begin;
            places[i] = in < 0 ? i : in < to - from ? from + in : end + (in - (to - from));
        }
        return new Encoding(
                longs(whole.ids(), places),
                longs(whole.types(), places),
                Arrays.stream(places).mapToObj(whole.tokens()::get).toList(),
                longs(whole.words(), places),
                longs(whole.texts(), places),
                Arrays.stream(places).map(p -> whole.starts()[p]).toArray(),
                Arrays.stream(places).map(p -> whole.ends()[p]).toArray());
    }

    private static long[] longs(long[] values, int[] places) {
        return Arrays.stream(places).mapToLong(p -> values[p]).toArray();
    }
}
