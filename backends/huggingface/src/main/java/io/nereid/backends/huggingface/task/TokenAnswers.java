// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.task;

import io.nereid.backends.tokenizer.NativeTokenizer;
import io.nereid.backends.tokenizer.NativeTokenizer.Encoding;
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
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;

/**
 * Labels of tokens. The output {@code entities} has a JSON list for each text, joined as the strategies of transformers'
 * token-classification pipeline do; in KServe's style there is one output with the number of each token's label.
 */
public final class TokenAnswers implements TaskAnswers {
    private static final String ENTITIES = "entities";
    private static final String STRATEGY = "aggregation_strategy";
    private static final String OUTSIDE = "O";
    /** SentencePiece's mark in the place of a space, LOWER ONE EIGHTH BLOCK. */
    private static final char MARK = '\u2581';

    /** How tokens are joined to entities. */
    public enum Strategy {
        /** Not at all. */
        NONE,
        /** Neighbours with the same label. */
        SIMPLE,
        /** Words, with the label of their first token; then neighbours. */
        FIRST,
        /** Words, with the label of the highest average score; then neighbours. */
        AVERAGE,
        /** Words, with the label of the token with the highest score; then neighbours. */
        MAX;

        /**
         * The strategy of a name.
         *
         * @throws ServingException INVALID_ARGUMENT for an unknown name
         */
        public static Strategy of(String name) {
            for (Strategy s : values()) {
                if (s.name().equals(name.toUpperCase(Locale.ROOT))) {
                    return s;
                }
            }
            throw ServingException.invalidArgument(STRATEGY + " is '" + name + "' (expected: "
                    + String.join(
                            ", ",
                            Stream.of(values())
                                    .map(s -> s.name().toLowerCase(Locale.ROOT))
                                    .toList())
                    + ")");
        }
    }

    private record Entity(String label, double score, int first, int last) {}

    private final List<String> labels;
    private final Strategy strategy;
    private final AnswerStyle style;
    private final NativeTokenizer tokenizer;
    private final long unknown;
    private final boolean prefixes;
    private final boolean marks;

    /**
     * @param labels the labels in the order of their numbers
     * @param strategy the strategy of requests that name none
     * @param tokenizer decodes words; not owned
     * @param unknown the number of the token for what the vocabulary lacks; -1 for none
     * @param prefixes whether the tokens within a word have a prefix, such as {@code ##}
     * @param marks whether the tokens at the beginning of a word have SentencePiece's mark for a space
     */
    public TokenAnswers(
            List<String> labels,
            Strategy strategy,
            AnswerStyle style,
            NativeTokenizer tokenizer,
            long unknown,
            boolean prefixes,
            boolean marks) {
        this.labels = List.copyOf(labels);
        this.strategy = strategy;
        this.style = style;
        this.tokenizer = tokenizer;
        this.unknown = unknown;
        this.prefixes = prefixes;
        this.marks = marks;
    }

    @Override
    public List<TensorSpec> outputs() {
        return switch (style) {
            case PIPELINE -> List.of(new TensorSpec(ENTITIES, DataType.BYTES, Shape.SCALAR));
            case KSERVE -> List.of(new TensorSpec(ModelMetadata.KSERVE_OUTPUT, DataType.INT64, Shape.of(1, -1)));
            default -> List.of(new TensorSpec(ModelMetadata.KSERVE_OUTPUT, DataType.BYTES, Shape.of(-1)));
        };
    }

    @Override
    public List<String> documents() {
        return style == AnswerStyle.KSERVE
                ? List.of()
                : List.of(outputs().get(0).name());
    }

    @Override
    public boolean keepsPadding() {
        return style != AnswerStyle.PIPELINE;
    }

    @Override
    public List<Tensor> answer(List<String> names, List<TextRow> rows, Map<String, Object> parameters) {
        try (TensorScope results = new TensorScope()) {
            for (String name : names) {
                results.add(style == AnswerStyle.PIPELINE ? entities(rows, parameters) : kserve(name, rows));
            }
            return results.release();
        }
    }

    private Tensor kserve(String name, List<TextRow> rows) {
        int width = labels.size();
        int tokens = rows.isEmpty() ? 0 : rows.get(0).padded();
        double[] numbers = new double[rows.size() * tokens];
        byte[][] literals = new byte[rows.size() * tokens][];
        for (int i = 0; i < rows.size(); i++) {
            float[] result = rows.get(i).result();
            for (int j = 0; j < tokens; j++) {
                if (style == AnswerStyle.KSERVE) {
                    numbers[i * tokens + j] = Numbers.argmax(result, j * width, width);
                } else {
                    literals[i * tokens + j] = Numbers.utf8(SequenceAnswers.literal(result, j * width, width, style));
                }
            }
        }
        return style == AnswerStyle.KSERVE
                ? Tensor.ofDoubles(name, DataType.INT64, Shape.of(rows.size(), 1, tokens), numbers)
                : Tensor.ofBytes(name, Shape.of(rows.size(), tokens), literals);
    }

    private Tensor entities(List<TextRow> rows, Map<String, Object> parameters) {
        Object given = parameters.get(STRATEGY);
        Strategy chosen = given == null ? strategy : Strategy.of(String.valueOf(given));
        byte[][] elements = new byte[rows.size()][];
        for (int i = 0; i < elements.length; i++) {
            JsonWriter writer = new JsonWriter(256);
            JsonValues.write(writer, entities(rows.get(i), chosen), JsonValues.NonFinite.NULL);
            elements[i] = Arrays.copyOf(writer.array(), writer.length());
        }
        return Tensor.ofBytes(ENTITIES, Shape.of(elements.length), elements);
    }

    private List<Map<String, Object>> entities(TextRow row, Strategy chosen) {
        Encoding encoding = row.encoding();
        List<Entity> tokens = new ArrayList<>();
        double[][] scores = new double[row.tokens()][];
        for (int i = 0; i < row.tokens(); i++) {
            if (encoding.texts()[i] >= 0) {
                scores[i] = Numbers.softmax(row.result(), i * labels.size(), labels.size());
                int best = Numbers.argmax(scores[i]);
                tokens.add(new Entity(labels.get(best), scores[i][best], i, i));
            }
        }
        List<Map<String, Object>> out = new ArrayList<>();
        if (chosen == Strategy.NONE) {
            for (Entity e : tokens) {
                if (!e.label.equals(OUTSIDE)) {
                    Map<String, Object> fields = new LinkedHashMap<>();
                    fields.put("entity", e.label);
                    fields.put("score", e.score);
                    fields.put("index", (long) e.first);
                    fields.put("word", word(row, e.first));
                    out.add(places(fields, row, e));
                }
            }
            return out;
        }
        List<Entity> parts = chosen == Strategy.SIMPLE ? tokens : words(row, tokens, scores, chosen);
        for (Entity e : neighbours(parts)) {
            String group = e.label.substring(e.label.indexOf('-') + 1);
            if (!group.equals(OUTSIDE)) {
                Map<String, Object> fields = new LinkedHashMap<>();
                fields.put("entity_group", group);
                fields.put("score", e.score);
                fields.put("word", words(row, e, chosen != Strategy.SIMPLE));
                out.add(places(fields, row, e));
            }
        }
        return out;
    }

    private static Map<String, Object> places(Map<String, Object> fields, TextRow row, Entity e) {
        fields.put("start", (long) row.encoding().starts()[e.first]);
        fields.put("end", (long) row.encoding().ends()[e.last]);
        return fields;
    }

    private boolean isUnknown(TextRow row, int token) {
        return row.encoding().ids()[token] == unknown;
    }

    private String word(TextRow row, int token) {
        return isUnknown(row, token)
                ? source(row, token)
                : row.encoding().tokens().get(token);
    }

    private static String source(TextRow row, int token) {
        return part(row.text(), row.encoding().starts()[token], row.encoding().ends()[token]);
    }

    /** A part of a text, by code points. */
    static String part(String text, int start, int end) {
        int from = text.offsetByCodePoints(0, start);
        return text.substring(from, text.offsetByCodePoints(from, end - start));
    }

    /** The text of the entity's tokens, in which what the vocabulary lacks is as the client wrote it. */
    private String words(TextRow row, Entity e, boolean ofWords) {
        if (marks) {
            return unmarked(row, e, ofWords);
        }
        for (int i = e.first; i <= e.last; i++) {
            if (isUnknown(row, i)) {
                StringBuilder joined = new StringBuilder();
                for (int j = e.first; j <= e.last; j++) {
                    boolean inside = isInside(row, j);
                    joined.append(j == e.first || inside ? "" : " ")
                            .append(isUnknown(row, j) ? source(row, j) : tokenText(row, j));
                }
                return joined.toString();
            }
        }
        return tokenizer.decode(Arrays.copyOfRange(row.encoding().ids(), e.first, e.last + 1), false);
    }

    /**
     * As the pipeline has it for SentencePiece's tokens: it converts words, which have lost the mark by then, as it converts tokens,
     * so that no spaces are between them.
     */
    private String unmarked(TextRow row, Entity e, boolean ofWords) {
        StringBuilder joined = new StringBuilder();
        for (int i = e.first; i <= e.last; i++) {
            String text = isUnknown(row, i)
                    ? source(row, i)
                    : row.encoding().tokens().get(i).replace(MARK, ' ');
            boolean begins = i == e.first || (ofWords && !isInside(row, i));
            boolean marked = begins && !isUnknown(row, i) && text.startsWith(" ");
            joined.append(marked ? text.substring(1) : text);
        }
        return joined.toString();
    }

    private static String tokenText(TextRow row, int token) {
        String text = row.encoding().tokens().get(token);
        return text.startsWith("##") ? text.substring(2) : text;
    }

    /** Whether a token continues a word. */
    private boolean isInside(TextRow row, int token) {
        if (isUnknown(row, token)) {
            return false;
        }
        int start = row.encoding().starts()[token];
        int end = row.encoding().ends()[token];
        if (prefixes) {
            String text = row.encoding().tokens().get(token);
            return text.codePointCount(0, text.length()) != end - start;
        }
        if (start <= 0) {
            return false;
        }
        int length = row.text().codePointCount(0, row.text().length());
        return part(row.text(), start - 1, Math.min(start + 1, length)).indexOf(' ') < 0;
    }

    private List<Entity> words(TextRow row, List<Entity> tokens, double[][] scores, Strategy chosen) {
        List<Entity> words = new ArrayList<>();
        int at = 0;
        while (at < tokens.size()) {
            int end = at + 1;
            while (end < tokens.size() && isInside(row, tokens.get(end).first)) {
                end++;
            }
            words.add(word(tokens.subList(at, end), scores, chosen));
            at = end;
        }
        return words;
    }

    private Entity word(List<Entity> tokens, double[][] scores, Strategy chosen) {
        int first = tokens.get(0).first;
        int last = tokens.get(tokens.size() - 1).last;
        double[] own = scores[first];
        if (chosen == Strategy.AVERAGE) {
            own = new double[labels.size()];
            for (Entity token : tokens) {
                for (int i = 0; i < own.length; i++) {
                    own[i] += scores[token.first][i] / tokens.size();
                }
            }
        } else if (chosen == Strategy.MAX) {
            double most = -1;
            for (Entity token : tokens) {
                if (token.score > most) {
                    most = token.score;
                    own = scores[token.first];
                }
            }
        }
        int best = Numbers.argmax(own);
        return new Entity(labels.get(best), own[best], first, last);
    }

    /** Joins neighbours whose labels are of one kind, until a label begins with {@code B-}. */
    private static List<Entity> neighbours(List<Entity> parts) {
        List<Entity> groups = new ArrayList<>();
        int at = 0;
        while (at < parts.size()) {
            String kind = kind(parts.get(at).label);
            double sum = parts.get(at).score;
            int end = at + 1;
            while (end < parts.size()
                    && kind(parts.get(end).label).equals(kind)
                    && !parts.get(end).label.startsWith("B-")) {
                sum += parts.get(end++).score;
            }
            groups.add(new Entity(parts.get(at).label, sum / (end - at), parts.get(at).first, parts.get(end - 1).last));
            at = end;
        }
        return groups;
    }

    private static String kind(String label) {
        return label.startsWith("B-") || label.startsWith("I-") ? label.substring(2) : label;
    }
}
