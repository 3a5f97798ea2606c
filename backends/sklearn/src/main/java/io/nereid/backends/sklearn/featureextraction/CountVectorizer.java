// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.featureextraction;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.backends.sklearn.pickle.PyDict;
import io.nereid.backends.sklearn.pickle.PythonValues;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.base.ServingException;
import java.text.Normalizer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;
import org.jspecify.annotations.Nullable;

/** {@code CountVectorizer}: counts the n-grams (of words or characters) of the vocabulary in a text. Immutable. */
public final class CountVectorizer extends Transformer {
    private static final Pattern SPACES = Pattern.compile("\\s\\s+", Pattern.UNICODE_CHARACTER_CLASS);
    private static final Pattern SPACE = Pattern.compile("\\s+", Pattern.UNICODE_CHARACTER_CLASS);
    private static final Pattern MARKS = Pattern.compile("\\p{M}+");

    private final Map<String, Integer> vocabulary = new HashMap<>();
    private final Set<String> stops = new HashSet<>();
    private final String analyzer;
    private final Pattern token;
    private final boolean lower;
    private final String accents;
    private final boolean binary;
    private final int shortest;
    private final int longest;

    /** Where terms count without a vocabulary; null with one. */
    private final @Nullable TermHashing hashing;

    private CountVectorizer(EstimatorAttributes f, int width, @Nullable TermHashing hashing) {
        super(f.type(), 1, width);
        this.hashing = hashing;
        for (Map.Entry<Object, Object> e :
                hashing == null ? entries(f).entrySet() : Set.<Map.Entry<Object, Object>>of()) {
            int place = (int) PythonValues.number(e.getValue());
            if (!(e.getKey() instanceof String word) || place < 0 || place >= width) {
                throw UnsupportedModel.corrupt(f.path() + " has an invalid vocabulary");
            }
            vocabulary.put(word, place);
        }
        analyzer = f.text("analyzer", "?");
        if (!List.of("word", "char", "char_wb").contains(analyzer)) {
            throw f.unsupported("analyzer");
        }
        for (String own : List.of("preprocessor", "tokenizer")) {
            if (f.has(own)) {
                throw f.unsupported(own);
            }
        }
        token = pattern(f);
        lower = f.flag("lowercase", true);
        accents = f.text("strip_accents", "");
        if (f.has("strip_accents") && !accents.equals("unicode") && !accents.equals("ascii")) {
            throw f.unsupported("strip_accents");
        }
        binary = f.flag("binary", false);
        List<Object> range = EstimatorAttributes.asList(f.required("ngram_range"));
        shortest = (int) PythonValues.number(range.get(0));
        longest = (int) PythonValues.number(range.get(1));
        if (shortest < 1 || longest < shortest || longest > 64) {
            throw f.unsupported("ngram_range");
        }
        stops(f);
    }

    private static Map<Object, Object> entries(EstimatorAttributes f) {
        Object vocabulary = f.required("vocabulary_");
        return vocabulary instanceof PyDict d
                ? d.items()
                : EstimatorAttributes.asObject(vocabulary).entries().items();
    }

    public static CountVectorizer of(EstimatorAttributes f) {
        int width = entries(f).size();
        if (width == 0) {
            throw UnsupportedModel.unsupported(f.path() + " has no vocabulary");
        }
        return new CountVectorizer(f, width, null);
    }

    /** {@code HashingVectorizer}: the column of a term is its hash. */
    public static CountVectorizer hashing(EstimatorAttributes f) {
        TermHashing hashing = TermHashing.of(f);
        return new CountVectorizer(f, hashing.width(), hashing);
    }

    private void stops(EstimatorAttributes f) {
        Object words = f.any("stop_words");
        if (words == null || !analyzer.equals("word")) {
            return;
        }
        if (words instanceof String) {
            // Named lists ('english') are not in the file. Stop words are not in the vocabulary, so they
            // do not count by
            // themselves; but in n-grams of several words they would have to be removed first.
            if (longest > 1 || hashing != null) {
                throw UnsupportedModel.unsupported(f.path() + " with stop_words='" + words + "'"
                        + (hashing == null ? " and n-grams of several words" : "") + " is not supported");
            }
            return;
        }
        for (Object word : EstimatorAttributes.asList(words)) {
            stops.add(String.valueOf(word));
        }
    }

    private static Pattern pattern(EstimatorAttributes f) {
        String given = f.text("token_pattern", "(?u)\\b\\w\\w+\\b");
        String text = given.startsWith("(?u)") ? given.substring(4) : given;
        // Without groups there are no nested repetitions, on which matching can take exponential time.
        if (text.indexOf('(') >= 0 || text.length() > 200) {
            throw f.unsupported("token_pattern");
        }
        try {
            return Pattern.compile(text, Pattern.UNICODE_CHARACTER_CLASS);
        } catch (PatternSyntaxException e) {
            throw f.unsupported("token_pattern");
        }
    }

    @Override
    public DataTable transform(DataTable table) {
        DataTable result = DataTable.of(table.rows(), width(PredictMethod.TRANSFORM));
        for (int r = 0; r < table.rows(); r++) {
            String text = table.text(r, 0);
            if (text == null) {
                throw ServingException.invalidArgument(type() + " was given a number (expected: text)");
            }
            List<String> terms = terms(prepared(text));
            if (hashing != null) {
                hashing.count(terms, binary, result.values(), r * hashing.width());
                continue;
            }
            for (String term : terms) {
                Integer place = vocabulary.get(term);
                if (place != null) {
                    int at = r * width(PredictMethod.TRANSFORM) + place;
                    result.values()[at] = binary ? 1 : result.values()[at] + 1;
                }
            }
        }
        return result;
    }

    private String prepared(String text) {
        String now = lower ? text.toLowerCase(Locale.ROOT) : text;
        if (accents.isEmpty()) {
            return now;
        }
        now = Normalizer.normalize(now, Normalizer.Form.NFKD);
        if (accents.equals("unicode")) {
            return MARKS.matcher(now).replaceAll("");
        }
        StringBuilder ascii = new StringBuilder();
        now.chars().filter(c -> c < 128).forEach(c -> ascii.append((char) c));
        return ascii.toString();
    }

    private List<String> terms(String text) {
        List<String> terms = new ArrayList<>();
        if (analyzer.equals("word")) {
            words(text, terms);
        } else if (analyzer.equals("char")) {
            letters(SPACES.matcher(text).replaceAll(" "), terms, false);
        } else {
            for (String word : SPACE.matcher(text).replaceAll(" ").strip().split(" ")) {
                if (!word.isEmpty()) {
                    letters(" " + word + " ", terms, true);
                }
            }
        }
        return terms;
    }

    private void words(String text, List<String> terms) {
        List<String> words = new ArrayList<>();
        Matcher matcher = token.matcher(text);
        while (matcher.find()) {
            String word = matcher.group();
            if (!stops.contains(word)) {
                words.add(word);
            }
        }
        for (int n = shortest; n <= longest; n++) {
            for (int i = 0; i + n <= words.size(); i++) {
                terms.add(n == 1 ? words.get(i) : String.join(" ", words.subList(i, i + n)));
            }
        }
    }

    /** Adds the n-grams of characters; with char_wb ({@code shortWordsOnce}) a word shorter than n counts once. */
    private void letters(String text, List<String> terms, boolean shortWordsOnce) {
        int[] points = text.codePoints().toArray();
        for (int n = shortest; n <= longest; n++) {
            if (n >= points.length) {
                if (n == points.length || shortWordsOnce) {
                    terms.add(text);
                }
                if (shortWordsOnce) {
                    break;
                }
                continue;
            }
            for (int i = 0; i + n <= points.length; i++) {
                terms.add(new String(points, i, n));
            }
        }
    }
}
