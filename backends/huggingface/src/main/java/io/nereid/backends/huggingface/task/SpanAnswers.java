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
import java.util.List;
import java.util.Map;

/**
 * The part of a text that answers a question: {@code answer}, {@code score}, and {@code start} and {@code end} in code points of the
 * text, chosen as transformers' question-answering pipeline does: the most probable start and end, of at most 15 tokens, extended to
 * whole words.
 */
public final class SpanAnswers implements TaskAnswers {
    private static final int MOST_TOKENS = 15;

    private record Span(String answer, double score, int start, int end) {}

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
        List<Span> spans = rows.stream().map(SpanAnswers::span).toList();
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

    private static Span span(TextRow row) {
        Encoding encoding = row.encoding();
        List<Integer> places = new ArrayList<>();
        for (int i = 0; i < row.tokens(); i++) {
            if (encoding.texts()[i] == 1) {
                places.add(i);
            }
        }
        if (places.isEmpty()) {
            return new Span("", 0, 0, 0);
        }
        float[] starts = new float[places.size()];
        float[] ends = new float[places.size()];
        for (int i = 0; i < starts.length; i++) {
            starts[i] = row.result()[2 * places.get(i)];
            ends[i] = row.result()[2 * places.get(i) + 1];
        }
        double[] start = Numbers.softmax(starts, 0, starts.length);
        double[] end = Numbers.softmax(ends, 0, ends.length);
        int first = 0;
        int last = 0;
        for (int i = 0; i < start.length; i++) {
            for (int j = i; j < Math.min(end.length, i + MOST_TOKENS); j++) {
                if (start[i] * end[j] > start[first] * end[last]) {
                    first = i;
                    last = j;
                }
            }
        }
        double score = start[first] * end[last];
        int from = places.get(first);
        int to = places.get(last);
        while (from > places.get(0) && encoding.words()[from - 1] == encoding.words()[from]) {
            from--;
        }
        while (to < places.get(places.size() - 1) && encoding.words()[to + 1] == encoding.words()[to]) {
            to++;
        }
        int begin = encoding.starts()[from];
        int stop = encoding.ends()[to];
        return new Span(TokenAnswers.part(String.valueOf(row.pair()), begin, stop), score, begin, stop);
    }
}
