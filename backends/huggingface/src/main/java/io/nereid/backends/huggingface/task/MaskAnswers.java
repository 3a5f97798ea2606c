// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.task;

import io.nereid.backends.tokenizer.NativeTokenizer;
import io.nereid.base.ServingException;
import io.nereid.json.JsonValues;
import io.nereid.json.JsonWriter;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tensor.TensorScope;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * The most probable tokens in the place of masked ones. The output {@code predictions} has a JSON list for each text, of lists where a
 * text has several masks, as transformers' fill-mask pipeline does; in KServe's style there is one output with the text of the tokens.
 */
public final class MaskAnswers implements TaskAnswers {
    private static final String PREDICTIONS = "predictions";
    private static final String TOP = "top_k";
    private static final int MOST_TOP = 1000;

    private final NativeTokenizer tokenizer;
    private final int vocabulary;
    private final long mask;
    private final int top;
    private final AnswerStyle style;

    /**
     * @param tokenizer decodes tokens; not owned
     * @param vocabulary the number of scores of a place
     * @param mask the number of the token that is replaced
     * @param top how many tokens are returned to requests that do not say it
     */
    public MaskAnswers(NativeTokenizer tokenizer, int vocabulary, long mask, int top, AnswerStyle style) {
        this.tokenizer = tokenizer;
        this.vocabulary = vocabulary;
        this.mask = mask;
        this.top = top;
        this.style = style;
    }

    @Override
    public List<TensorSpec> outputs() {
        return List.of(new TensorSpec(
                style == AnswerStyle.PIPELINE ? PREDICTIONS : ModelMetadata.KSERVE_OUTPUT,
                DataType.BYTES,
                Shape.SCALAR));
    }

    @Override
    public List<String> documents() {
        return style == AnswerStyle.KSERVE
                ? List.of()
                : List.of(outputs().get(0).name());
    }

    @Override
    public List<Tensor> answer(List<String> names, List<TextRow> rows, Map<String, Object> parameters) {
        int wanted = top(parameters);
        byte[][] elements = new byte[rows.size()][];
        for (int i = 0; i < elements.length; i++) {
            TextRow row = rows.get(i);
            elements[i] = switch (style) {
                case PIPELINE -> predictions(row, wanted);
                case KSERVE -> Numbers.utf8(tokenizer.decode(best(row), false));
                default -> Numbers.utf8(literal(row));
            };
        }
        try (TensorScope results = new TensorScope()) {
            for (String name : names) {
                results.add(Tensor.ofBytes(name, Shape.of(elements.length), elements));
            }
            return results.release();
        }
    }

    private int top(Map<String, Object> parameters) {
        Object value = parameters.get(TOP);
        if (value == null) {
            return Math.min(top, vocabulary);
        }
        if (value instanceof Long n && n >= 1 && n <= MOST_TOP) {
            return (int) Math.min(n, vocabulary);
        }
        throw ServingException.invalidArgument(
                "parameter " + TOP + " is '" + value + "' (expected: a whole number from 1 to " + MOST_TOP + ")");
    }

    private long[] best(TextRow row) {
        long[] ids = new long[row.result().length / vocabulary];
        for (int i = 0; i < ids.length; i++) {
            ids[i] = Numbers.argmax(row.result(), i * vocabulary, vocabulary);
        }
        return ids;
    }

    private byte[] predictions(TextRow row, int wanted) {
        List<Object> all = new ArrayList<>();
        int place = 0;
        for (int i = 0; i < row.tokens(); i++) {
            if (row.encoding().ids()[i] != mask) {
                continue;
            }
            double[] scores = Numbers.softmax(row.result(), place++ * vocabulary, vocabulary);
            int[] order = IntStream.range(0, vocabulary)
                    .boxed()
                    .sorted(Comparator.comparingDouble((Integer t) -> -scores[t]))
                    .limit(wanted)
                    .mapToInt(t -> t)
                    .toArray();
            List<Object> list = new ArrayList<>();
            for (int token : order) {
                long[] filled = row.encoding().ids().clone();
                filled[i] = token;
                Map<String, Object> fields = new LinkedHashMap<>();
                fields.put("score", scores[token]);
                fields.put("token", (long) token);
                fields.put("token_str", tokenizer.decode(new long[] {token}, false));
                fields.put("sequence", tokenizer.decode(filled, true));
                list.add(fields);
            }
            all.add(list);
        }
        JsonWriter writer = new JsonWriter(512);
        JsonValues.write(writer, all.size() == 1 ? all.get(0) : all, JsonValues.NonFinite.NULL);
        return Arrays.copyOf(writer.array(), writer.length());
    }

    private String literal(TextRow row) {
        StringBuilder out = new StringBuilder("[");
        int places = row.result().length / vocabulary;
        for (int place = 0; place < places; place++) {
            int from = place * vocabulary;
            double[] scores = Numbers.softmax(row.result(), from, vocabulary);
            out.append(place == 0 ? "[" : ", [");
            for (int i = 0; i < vocabulary; i++) {
                out.append(i == 0 ? "{" : ", {").append(i).append(": ");
                if (style == AnswerStyle.KSERVE_LOGITS) {
                    out.append(Numbers.python(row.result()[from + i]));
                } else {
                    out.append('\'')
                            .append(String.format(Locale.ROOT, "%.4f", scores[i]))
                            .append('\'');
                }
                out.append('}');
            }
            out.append(']');
        }
        return out.append(']').toString();
    }
}
