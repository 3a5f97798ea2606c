// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.task;

import io.nereid.backends.tokenizer.NativeTokenizer.Encoding;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tensor.TensorScope;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.PriorityQueue;

/**
 * The part of a text that answers a question: {@code answer}, {@code score}, and {@code start} and {@code end} in code points of the
 * text, chosen as transformers' question-answering pipeline does: in each window over the text the twelve most probable pairs of start
 * and end, of at most 15 tokens, extended to whole words; the answer with the highest sum of scores.
 */
public final class SpanAnswers implements TaskAnswers {
    private static final int MOST_TOKENS = 15;
    private static final int CANDIDATES = 12;
    private static final float EXCLUDED = -10_000;

    private record Candidate(int first, int last, double score) {}

    private record Span(String answer, double score, int start, int end) {}

    private final long firstToken;

    /** @param firstToken the number of the token before the texts; -1 for none */
    public SpanAnswers(long firstToken) {
        this.firstToken = firstToken;
    }

    @Override
    public List<TensorSpec> outputs() {
        return List.of(
                new TensorSpec("answer", DataType.BYTES, Shape.SCALAR),
                new TensorSpec("score", DataType.FP32, Shape.SCALAR),
                new TensorSpec("start", DataType.INT64, Shape.SCALAR),
                new TensorSpec("end", DataType.INT64, Shape.SCALAR));
    }

    @Override
    public List<Tensor> answer(List<String> names, List<TextRow> rows, Map<String, Object> parameters) {
        List<Span> spans = rows.stream().map(this::span).toList();
        try (TensorScope results = new TensorScope()) {
            for (String name : names) {
                results.add(one(name, spans));
            }
            return results.release();
        }
    }

    private static Tensor one(String name, List<Span> spans) {
        Shape shape = Shape.of(spans.size());
        return switch (name) {
            case "answer" ->
                Tensor.ofBytes(
                        name,
                        shape,
                        spans.stream().map(s -> Numbers.utf8(s.answer)).toArray(byte[][]::new));
            case "score" ->
                Tensor.ofDoubles(
                        name,
                        DataType.FP32,
                        shape,
                        spans.stream().mapToDouble(Span::score).toArray());
            case "start" ->
                Tensor.ofDoubles(
                        name,
                        DataType.INT64,
                        shape,
                        spans.stream().mapToDouble(Span::start).toArray());
            default ->
                Tensor.ofDoubles(
                        name,
                        DataType.INT64,
                        shape,
                        spans.stream().mapToDouble(Span::end).toArray());
        };
    }

    /** Of equal answers in several windows, or of other tokens of the same words, the scores are added. */
    private Span span(TextRow row) {
        Map<String, Span> found = new LinkedHashMap<>();
        candidates(row, found);
        row.further().forEach(window -> candidates(window, found));
        Span best = new Span("", 0, 0, 0);
        for (Span span : found.values()) {
            if (span.score > best.score) {
                best = span;
            }
        }
        return best;
    }

    private void candidates(TextRow row, Map<String, Span> found) {
        Encoding encoding = row.encoding();
        int tokens = row.tokens();
        float[] starts = new float[tokens];
        float[] ends = new float[tokens];
        for (int i = 0; i < tokens; i++) {
            // The token before the texts takes its share, which models give to it that know questions without answers.
            boolean counts = encoding.texts()[i] == 1 || encoding.ids()[i] == firstToken;
            starts[i] = counts ? row.result()[2 * i] : EXCLUDED;
            ends[i] = counts ? row.result()[2 * i + 1] : EXCLUDED;
        }
        double[] start = Numbers.softmax(starts, 0, tokens);
        double[] end = Numbers.softmax(ends, 0, tokens);
        PriorityQueue<Candidate> best = new PriorityQueue<>(Comparator.comparingDouble(Candidate::score));
        for (int i = 1; i < tokens; i++) {
            for (int j = i; j < Math.min(tokens, i + MOST_TOKENS); j++) {
                double score = start[i] * end[j];
                if (score > 0 && (best.size() < CANDIDATES || score > best.element().score)) {
                    best.add(new Candidate(i, j, score));
                    if (best.size() > CANDIDATES) {
                        best.remove();
                    }
                }
            }
        }
        List<Candidate> sorted = new ArrayList<>(best);
        sorted.sort(Comparator.comparingDouble(Candidate::score).reversed());
        for (Candidate c : sorted) {
            if (encoding.texts()[c.first] == 1 && encoding.texts()[c.last] == 1) {
                Span span = words(row, c);
                found.merge(
                        span.answer.toLowerCase(Locale.ROOT),
                        span,
                        (known, again) -> new Span(known.answer, known.score + again.score, known.start, known.end));
            }
        }
    }

    /** Extended to whole words. */
    private static Span words(TextRow row, Candidate candidate) {
        Encoding encoding = row.encoding();
        int from = candidate.first;
        int to = candidate.last;
        while (from > 0 && sameWord(encoding, from - 1, from)) {
            from--;
        }
        while (to + 1 < row.tokens() && sameWord(encoding, to, to + 1)) {
            to++;
        }
        int begin = encoding.starts()[from];
        int stop = encoding.ends()[to];
        return new Span(TokenAnswers.part(String.valueOf(row.pair()), begin, stop), candidate.score, begin, stop);
    }

    private static boolean sameWord(Encoding encoding, int token, int next) {
        return encoding.texts()[token] == encoding.texts()[next] && encoding.words()[token] == encoding.words()[next];
    }
}
