// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees.format;

import io.nereid.backends.trees.forest.FeatureKeys;
import io.nereid.backends.trees.forest.ForestBuilder;
import io.nereid.backends.trees.forest.GrowableArrays;
import io.nereid.backends.trees.forest.LinkFunction;
import io.nereid.backends.trees.forest.ParsedModel;
import io.nereid.backends.trees.forest.ParsedTree;
import io.nereid.backends.trees.forest.ParsedTree.LinearLeaf;
import io.nereid.base.ServingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Reads models in LightGBM's text format: sections of {@code name=value} lines, one section for the model and one for
 * each tree. Confined to one load.
 */
final class LightgbmReader {
    private static final int MOST_FEATURES = 1 << 24;
    private static final int MOST_OUTPUTS = 1 << 16;

    private final byte[] bytes;
    private final int end;
    private final boolean covers;
    private int pos;
    private long setWords;
    private int @Nullable [] cachedBoundaries;
    private int @Nullable [] cachedWords;

    /** The fields of the current section. */
    private final Map<String, String> fields = new HashMap<>();

    private LightgbmReader(byte[] bytes, int length, boolean covers) {
        this.bytes = bytes;
        this.covers = covers;
        this.end = length;
    }

    /** Whether the bytes begin like a LightGBM model. */
    static boolean recognises(byte[] bytes, int length) {
        return length >= 5
                && bytes[0] == 't'
                && bytes[1] == 'r'
                && bytes[2] == 'e'
                && bytes[3] == 'e'
                && (bytes[4] == '\n' || bytes[4] == '\r');
    }

    /**
     * Reads the model of a text.
     *
     * @param covers whether to read the row counts of nodes, which SHAP values need
     * @throws ServingException INVALID_ARGUMENT for a text that is not a model, or a model that is not supported
     */
    static ParsedModel read(byte[] bytes, int length, boolean covers) {
        return new LightgbmReader(bytes, length, covers).model();
    }

    private ParsedModel model() {
        String next = section();
        int outputs = count("num_tree_per_iteration", MOST_OUTPUTS);
        int features = count("max_feature_idx", MOST_FEATURES) + 1;
        if (outputs == 0) {
            throw bad("an iteration has no trees");
        }
        boolean average = fields.containsKey("average_output");
        String objective = fields.getOrDefault("objective", "");
        String nameList = fields.getOrDefault("feature_names", "").strip();
        List<String> names = nameList.isEmpty() ? List.of() : List.of(nameList.split(" ", -1));
        if (!names.isEmpty() && names.size() != features) {
            throw bad("there are " + names.size() + " names for " + features + " features");
        }
        LinkFunction link = link(objective);
        int classes = objective.startsWith("multiclass") ? outputs : objective.startsWith("binary") ? 2 : 0;
        String sizes = fields.getOrDefault("tree_sizes", "").strip();
        int announced = sizes.isEmpty() ? 0 : sizes.split(" ", -1).length;
        List<ParsedTree> trees = new ArrayList<>();
        while (next.startsWith("Tree=")) {
            next = section();
            trees.add(tree(trees.size(), trees.size() % outputs, features));
        }
        if (!next.equals("end of trees")) {
            throw bad("the text has no 'end of trees', so it is truncated");
        }
        if (announced != 0 && announced != trees.size()) {
            throw bad("'tree_sizes' lists " + announced + " trees, but there are " + trees.size());
        }
        int[] iterations = new int[trees.size() / outputs + 1];
        for (int i = 0; i < iterations.length; i++) {
            iterations[i] = i * outputs;
        }
        return new ParsedModel(
                        ParsedModel.LIGHTGBM,
                        objective,
                        trees,
                        null,
                        features,
                        outputs,
                        new double[outputs],
                        average ? Math.max(1, trees.size() / outputs) : 1,
                        link,
                        classes,
                        names)
                .withIterations(iterations, -1);
    }

    /**
     * Reads the fields of a section, up to the line that begins a tree or ends the trees; returns that line, or empty
     * at the end.
     */
    private String section() {
        fields.clear();
        while (pos < end) {
            int from = pos;
            int equals = -1;
            while (pos < end && bytes[pos] != '\n') {
                if (bytes[pos] == '=' && equals < 0) {
                    equals = pos;
                }
                pos++;
            }
            int to = pos > from && bytes[pos - 1] == '\r' ? pos - 1 : pos;
            pos++;
            if (equals < 0) {
                String line = text(from, Math.min(to, from + 64));
                if (line.equals("end of trees")) {
                    return line;
                }
                fields.put(line, "");
            } else {
                String key = text(from, Math.min(equals, from + 64));
                if (key.equals("Tree")) {
                    return text(from, Math.min(to, from + 64));
                }
                // Fields that no prediction depends on are not kept.
                boolean cover = key.equals("internal_count") || key.equals("leaf_count");
                boolean idle = key.startsWith("split_gain")
                        || key.startsWith("internal_")
                        || key.equals("leaf_count")
                        || key.equals("leaf_weight");
                if (cover ? covers : !idle) {
                    fields.put(key, text(equals + 1, to));
                }
            }
        }
        return "";
    }

    private String text(int from, int to) {
        return new String(bytes, from, to - from, StandardCharsets.UTF_8);
    }

    private ParsedTree tree(int number, int group, int features) {
        int leaves = count("num_leaves", Integer.MAX_VALUE);
        double[] values = doubles(number, "leaf_value", leaves);
        int inner = leaves - 1;
        if (inner < 0) {
            throw ParsedTree.bad(number, "has no leaves");
        }
        LinearLeaf[] linear =
                fields.getOrDefault("is_linear", "0").strip().equals("1") ? linear(number, leaves, features) : null;
        int[] feature = ints(number, "split_feature", inner);
        double[] threshold = doubles(number, "threshold", inner);
        int[] decision = ints(number, "decision_type", inner);
        int[] left = ints(number, "left_child", inner);
        int[] right = ints(number, "right_child", inner);
        byte[] rules = new byte[inner];
        int[][] sets = null;
        for (int n = 0; n < inner; n++) {
            // decision_type: bit 0 categorical, bit 1 default left, bits 2 and 3 the missing type (none, zero, NaN).
            boolean defaultLeft = (decision[n] & 2) != 0;
            if ((decision[n] & 1) != 0) {
                sets = sets == null ? new int[inner][] : sets;
                sets[n] = set(number, threshold[n]);
                rules[n] = FeatureKeys.CATEGORY_OR_NONE;
                continue;
            }
            switch (decision[n] >> 2) {
                case 0:
                    rules[n] = FeatureKeys.NAN_IS_ZERO;
                    break;
                case 1:
                    rules[n] = defaultLeft ? FeatureKeys.ZERO_LEFT : FeatureKeys.ZERO_RIGHT;
                    break;
                case 2:
                    rules[n] = defaultLeft ? FeatureKeys.NAN_LEFT : FeatureKeys.NAN_RIGHT;
                    break;
                default:
                    throw ParsedTree.bad(number, "has decision type " + decision[n] + " (expected: 0 to 11)");
            }
        }
        ParsedTree tree = new ParsedTree(
                feature,
                threshold,
                rules,
                new boolean[inner],
                left,
                right,
                sets,
                values,
                1,
                group,
                linear,
                cover(number, leaves));
        tree.check(number, features);
        cachedBoundaries = null;
        cachedWords = null;
        return tree;
    }

    private ParsedTree.@Nullable Cover cover(int number, int leaves) {
        if (leaves == 1) {
            return new ParsedTree.Cover(new double[0], new double[] {1});
        }
        try {
            return new ParsedTree.Cover(
                    doubles(number, "internal_count", leaves - 1), doubles(number, "leaf_count", leaves));
        } catch (ServingException e) {
            // No prediction depends on counts, so the model is served, without SHAP values.
            return null;
        }
    }

    /** The bit set of a categorical split, whose threshold is the index of a set in {@code cat_boundaries}. */
    private int[] set(int number, double index) {
        if (cachedBoundaries == null || cachedWords == null) {
            cachedBoundaries = ints(number, "cat_boundaries", -1);
            cachedWords = ints(number, "cat_threshold", -1);
        }
        int at = (int) index;
        if (at != index || at < 0 || at + 1 >= cachedBoundaries.length) {
            throw ParsedTree.bad(number, "has a split on a category set that does not exist");
        }
        int from = cachedBoundaries[at];
        int to = cachedBoundaries[at + 1];
        if (from < 0 || to < from || to > cachedWords.length) {
            throw ParsedTree.bad(number, "has a category set that is out of range");
        }
        setWords += to - from;
        if (setWords > ForestBuilder.MOST_SET_WORDS) {
            throw ParsedTree.bad(number, "has too many or too large category sets");
        }
        return Arrays.copyOfRange(cachedWords, from, to);
    }

    private LinearLeaf[] linear(int number, int leaves, int features) {
        double[] constants = doubles(number, "leaf_const", leaves);
        int[] counts = ints(number, "num_features", leaves);
        int[] used = ints(number, "leaf_features", -1);
        double[] coefficients = doubles(number, "leaf_coeff", used.length);
        LinearLeaf[] models = new LinearLeaf[leaves];
        int at = 0;
        for (int i = 0; i < leaves; i++) {
            if (counts[i] < 0 || counts[i] > used.length - at) {
                throw ParsedTree.bad(number, "lacks features of a linear leaf");
            }
            int[] of = Arrays.copyOfRange(used, at, at + counts[i]);
            for (int f : of) {
                if (f < 0 || f >= features) {
                    throw ParsedTree.bad(number, "has a linear leaf of feature " + f + " of " + features);
                }
            }
            models[i] = new LinearLeaf(constants[i], of, Arrays.copyOfRange(coefficients, at, at + counts[i]));
            at += counts[i];
        }
        return models;
    }

    private int count(String name, int most) {
        String text = fields.get(name);
        if (text == null) {
            throw bad("it has no '" + name + "'");
        }
        try {
            int value = Integer.parseInt(text.strip());
            if (value >= 0 && value <= most) {
                return value;
            }
        } catch (NumberFormatException e) {
            // Reported below.
        }
        throw bad("'" + name + "' is '" + shortened(text) + "' (expected: a count)");
    }

    /** Reads {@code number} integers of 32 bits, signed or unsigned; any number of them for -1. */
    private int[] ints(int number, String name, int size) {
        GrowableArrays.Ints items = new GrowableArrays.Ints();
        String text = fields.getOrDefault(name, "");
        int at = 0;
        while ((at = begin(text, at)) < text.length()) {
            int to = end(text, at);
            try {
                long value = Long.parseLong(text, at, to, 10);
                if (value < Integer.MIN_VALUE || value > 0xffffffffL) {
                    throw ParsedTree.bad(number, "has " + value + " in '" + name + "'");
                }
                items.add((int) value);
            } catch (NumberFormatException e) {
                throw ParsedTree.bad(
                        number,
                        "has '" + shortened(text.substring(at, to)) + "' in '" + name + "' (expected: a number)");
            }
            at = to;
        }
        if (size >= 0 && items.size() != size) {
            throw ParsedTree.bad(number, "has " + items.size() + " of '" + name + "' (expected: " + size + ")");
        }
        return items.toArray();
    }

    private double[] doubles(int number, String name, int size) {
        GrowableArrays.Doubles items = new GrowableArrays.Doubles();
        String text = fields.getOrDefault(name, "");
        int at = 0;
        while ((at = begin(text, at)) < text.length()) {
            int to = end(text, at);
            items.add(number(number, name, text.substring(at, to)));
            at = to;
        }
        if (items.size() != size) {
            throw ParsedTree.bad(number, "has " + items.size() + " of '" + name + "' (expected: " + size + ")");
        }
        return items.toArray();
    }

    private static double number(int tree, String name, String text) {
        try {
            return Double.parseDouble(text);
        } catch (NumberFormatException e) {
            switch (text.toLowerCase(Locale.ROOT)) {
                case "inf":
                case "+inf":
                    return Double.POSITIVE_INFINITY;
                case "-inf":
                    return Double.NEGATIVE_INFINITY;
                case "nan":
                case "-nan":
                    return Double.NaN;
                default:
                    throw ParsedTree.bad(tree, "has '" + shortened(text) + "' in '" + name + "' (expected: a number)");
            }
        }
    }

    private static int begin(String text, int at) {
        int i = at;
        while (i < text.length() && text.charAt(i) == ' ') {
            i++;
        }
        return i;
    }

    private static int end(String text, int at) {
        int i = at;
        while (i < text.length() && text.charAt(i) != ' ') {
            i++;
        }
        return i;
    }

    private static LinkFunction link(String objective) {
        String[] words = objective.strip().split(" ", -1);
        switch (words[0]) {
            case "binary":
            case "multiclassova":
                return new LinkFunction(LinkFunction.Kind.LOGISTIC, scale(words));
            case "cross_entropy":
            case "xentropy":
                return LinkFunction.of(LinkFunction.Kind.LOGISTIC);
            case "cross_entropy_lambda":
            case "xentlambda":
                return LinkFunction.of(LinkFunction.Kind.SOFTPLUS);
            case "multiclass":
                return LinkFunction.of(LinkFunction.Kind.SOFTMAX);
            case "poisson":
            case "gamma":
            case "tweedie":
                return LinkFunction.of(LinkFunction.Kind.EXP);
            case "regression":
            case "regression_l2":
                return List.of(words).contains("sqrt")
                        ? LinkFunction.of(LinkFunction.Kind.SQUARE)
                        : LinkFunction.IDENTITY;
            case "":
            case "none":
            case "custom":
            case "regression_l1":
            case "huber":
            case "fair":
            case "quantile":
            case "mape":
            case "lambdarank":
            case "rank_xendcg":
                return LinkFunction.IDENTITY;
            default:
                throw ServingException.invalidArgument(
                        "objective '" + shortened(words[0]) + "' is unknown, so its predictions cannot be computed",
                        "update the server, or set 'objective' in the file to one that is known");
        }
    }

    private static double scale(String[] words) {
        for (String word : words) {
            if (word.startsWith("sigmoid:")) {
                double scale = number(0, "objective", word.substring(8));
                if (scale > 0) {
                    return scale;
                }
                throw bad("the objective has '" + shortened(word) + "' (expected: above 0)");
            }
        }
        return 1;
    }

    private static String shortened(String text) {
        return String.format(Locale.ROOT, "%.64s", text);
    }

    private static ServingException bad(String what) {
        return ServingException.invalidArgument(what);
    }
}
