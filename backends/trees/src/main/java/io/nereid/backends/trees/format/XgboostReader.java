// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees.format;

import io.nereid.backends.trees.forest.FeatureKeys;
import io.nereid.backends.trees.forest.ForestBuilder;
import io.nereid.backends.trees.forest.ParsedModel;
import io.nereid.backends.trees.forest.ParsedTree;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * Reads models that XGBoost saved as JSON or UBJ: tree ensembles (gbtree), dart and linear models (gblinear). Unknown
 * fields are skipped. Confined to one load.
 */
final class XgboostReader {
    private static final int MISSING = -1;
    private static final int MOST_OUTPUTS = 1 << 16;

    private final DocumentReader in;
    private final boolean covers;
    private final List<RawTree> trees = new ArrayList<>();
    private final List<String> names = new ArrayList<>();
    private int[] groups = new int[0];
    private float[] dropped = new float[0];
    private float @Nullable [] weights;
    private String booster = "";
    private String objective = "";
    private String baseScore = "";
    private int classes;
    private int targets = 1;
    private int features = MISSING;
    private long setWords;
    private int leafWidth;
    private int[] iterations = {};
    private int best = -1;
    private int bestTrees = -1;
    private int parallel;

    private XgboostReader(DocumentReader in, boolean covers) {
        this.in = in;
        this.covers = covers;
    }

    /** The arrays of one tree, as in the file. Confined to one load. */
    private static final class RawTree {
        private int[] left = new int[0];
        private int[] right = new int[0];
        private int[] feature = new int[0];
        private int[] type = new int[0];
        private int[] defaultLeft = new int[0];
        private float[] condition = new float[0];
        private float[] baseWeights = new float[0];
        private float @Nullable [] leafWeights;
        private int[] categories = new int[0];
        private int[] categoryNodes = new int[0];
        private int[] categorySegments = new int[0];
        private int[] categorySizes = new int[0];
        private float[] cover = new float[0];
        private int width = 1;
    }

    /**
     * Reads the model of a document.
     *
     * @param covers whether to read the covers (Hessian sums) of nodes, which SHAP values need
     * @throws ServingException INVALID_ARGUMENT for a document that is not a model, or a model that is not supported
     */
    static ParsedModel read(DocumentReader in, boolean covers) {
        XgboostReader reader = new XgboostReader(in, covers);
        boolean learner = false;
        in.beginObject();
        while (in.nextField()) {
            if (in.key().equals("learner")) {
                reader.learner();
                learner = true;
            } else if (in.key().equals("Model")) {
                learner |= reader.snapshot();
            } else {
                in.skip();
            }
        }
        in.end();
        if (!learner) {
            throw bad("it has no 'learner', so it is not a model of XGBoost");
        }
        return reader.model();
    }

    /**
     * Reads the model of a snapshot, which is what the library's serialization writes into a pickle: the model beside
     * the configuration of its training.
     */
    private boolean snapshot() {
        boolean learner = false;
        in.beginObject();
        while (in.nextField()) {
            if (in.key().equals("learner")) {
                learner();
                learner = true;
            } else {
                in.skip();
            }
        }
        return learner;
    }

    private void learner() {
        in.beginObject();
        while (in.nextField()) {
            switch (in.key()) {
                case "gradient_booster":
                    booster();
                    break;
                case "feature_names":
                    in.beginArray();
                    while (in.hasNext()) {
                        names.add(in.text());
                    }
                    break;
                case "attributes":
                    in.beginObject();
                    while (in.nextField()) {
                        if (in.key().equals("best_iteration")) {
                            best = best(in.text());
                        } else if (in.key().equals("best_ntree_limit")) {
                            bestTrees = best(in.text());
                        } else {
                            in.skip();
                        }
                    }
                    break;
                case "learner_model_param":
                    parameters();
                    break;
                case "objective":
                    in.beginObject();
                    while (in.nextField()) {
                        if (in.key().equals("name")) {
                            objective = in.text();
                        } else {
                            in.skip();
                        }
                    }
                    break;
                default:
                    in.skip();
            }
        }
    }

    private static int best(String text) {
        try {
            return Integer.parseInt(text.strip());
        } catch (NumberFormatException e) {
            return -1;
        }
    }

    private void parameters() {
        in.beginObject();
        while (in.nextField()) {
            switch (in.key()) {
                case "base_score":
                    baseScore = in.text();
                    break;
                case "num_class":
                    classes = count();
                    break;
                case "num_target":
                    targets = count();
                    break;
                case "num_feature":
                    features = count();
                    break;
                default:
                    in.skip();
            }
        }
    }

    private int count() {
        String text = in.text();
        try {
            int value = Integer.parseInt(text);
            if (value >= 0) {
                return value;
            }
        } catch (NumberFormatException e) {
            // Reported below.
        }
        throw bad("'" + shortened(text) + "' is not a count");
    }

    private void booster() {
        in.beginObject();
        while (in.nextField()) {
            switch (in.key()) {
                case "name":
                    booster = in.text();
                    break;
                case "model":
                    boosterModel();
                    break;
                case "gbtree":
                    // The trees of a dart model.
                    in.beginObject();
                    while (in.nextField()) {
                        if (in.key().equals("model")) {
                            boosterModel();
                        } else {
                            in.skip();
                        }
                    }
                    break;
                case "weight_drop":
                    dropped = in.floats();
                    break;
                default:
                    in.skip();
            }
        }
    }

    private void boosterModel() {
        in.beginObject();
        while (in.nextField()) {
            switch (in.key()) {
                case "trees":
                    in.beginArray();
                    while (in.hasNext()) {
                        trees.add(tree());
                    }
                    break;
                case "iteration_indptr":
                    iterations = in.ints();
                    break;
                case "tree_info":
                    groups = in.ints();
                    break;
                case "gbtree_model_param":
                    in.beginObject();
                    while (in.nextField()) {
                        if (in.key().equals("num_parallel_tree")) {
                            parallel = count();
                        } else {
                            in.skip();
                        }
                    }
                    break;
                case "weights":
                    weights = in.floats();
                    break;
                default:
                    in.skip();
            }
        }
    }

    private RawTree tree() {
        RawTree t = new RawTree();
        in.beginObject();
        while (in.nextField()) {
            switch (in.key()) {
                case "left_children":
                    t.left = in.ints();
                    break;
                case "right_children":
                    t.right = in.ints();
                    break;
                case "split_indices":
                    t.feature = in.ints();
                    break;
                case "split_type":
                    t.type = in.ints();
                    break;
                case "default_left":
                    t.defaultLeft = in.ints();
                    break;
                case "split_conditions":
                    t.condition = in.floats();
                    break;
                case "base_weights":
                    t.baseWeights = in.floats();
                    break;
                case "leaf_weights":
                    t.leafWeights = in.floats();
                    break;
                case "sum_hessian":
                    if (covers) {
                        t.cover = in.floats();
                    } else {
                        in.skip();
                    }
                    break;
                case "categories":
                    t.categories = in.ints();
                    break;
                case "categories_nodes":
                    t.categoryNodes = in.ints();
                    break;
                case "categories_segments":
                    t.categorySegments = in.ints();
                    break;
                case "categories_sizes":
                    t.categorySizes = in.ints();
                    break;
                case "tree_param":
                    in.beginObject();
                    while (in.nextField()) {
                        if (in.key().equals("size_leaf_vector")) {
                            t.width = Math.max(1, count());
                        } else {
                            in.skip();
                        }
                    }
                    break;
                default:
                    in.skip();
            }
        }
        if (t.width == 1) {
            t.baseWeights = new float[0];
        }
        return t;
    }

    private ParsedModel model() {
        if (features == MISSING) {
            throw bad("it has no 'num_feature'");
        }
        int outputs = Math.max(1, Math.max(classes, targets));
        if (outputs > MOST_OUTPUTS) {
            throw bad("there are " + outputs + " outputs (expected: at most " + MOST_OUTPUTS + ")");
        }
        double[] base = base(outputs);
        List<ParsedTree> parsed = new ArrayList<>(trees.size());
        if (booster.equals("gblinear")) {
            if (weights == null || weights.length != (features + 1L) * outputs) {
                throw bad("there are " + (weights == null ? 0 : weights.length) + " weights for " + features
                        + " features and " + outputs + " outputs");
            }
            // The library starts all outputs of a linear model with the first base score; results must equal its.
            Arrays.fill(base, base[0]);
        } else if (booster.equals("gbtree") || booster.equals("dart")) {
            weights = null;
            if (groups.length != trees.size()) {
                throw bad("'tree_info' lists " + groups.length + " trees, but there are " + trees.size());
            }
            if (dropped.length != (booster.equals("dart") ? trees.size() : 0)) {
                throw bad("'weight_drop' lists " + dropped.length + " trees, but there are " + trees.size());
            }
            for (int i = 0; i < groups.length; i++) {
                parsed.add(parse(i, outputs));
                trees.set(i, NONE); // frees the raw arrays early
            }
        } else {
            throw bad("booster '" + shortened(booster) + "' is unknown (expected: gbtree, dart or gblinear)");
        }
        if (!names.isEmpty() && names.size() != features) {
            throw bad("there are " + names.size() + " names for " + features + " features");
        }
        ParsedModel model = new ParsedModel(
                ParsedModel.XGBOOST,
                objective,
                parsed,
                weights,
                features,
                outputs,
                base,
                1,
                XgboostObjective.link(objective),
                objective.startsWith("multi:") ? outputs : objective.equals("binary:logistic") ? 2 : 0,
                List.copyOf(names));
        if (!ascend(parsed.size())) {
            iterations = counted(parsed.size(), outputs);
        }
        return ascend(parsed.size()) ? model.withIterations(iterations, best) : model;
    }

    /**
     * Where iterations begin in a file that does not store it, as those of XGBoost before 2: an iteration has a number of
     * parallel trees for each output. That number is in the file, or follows from the best iteration, which versions
     * before 1.7 store with the number of trees up to it; empty when it is unknown.
     */
    private int[] counted(int all, int outputs) {
        int side = parallel > 0 ? parallel : best >= 0 && bestTrees > 0 ? bestTrees / (best + 1) : 0;
        long each = (long) side * outputs;
        if (all == 0 || each == 0 || all % each != 0) {
            return new int[0];
        }
        int[] begins = new int[(int) (all / each) + 1];
        for (int i = 0; i < begins.length; i++) {
            begins[i] = (int) (i * each);
        }
        return begins;
    }

    /** Whether the file stores where iterations begin, as XGBoost 2 and later do, in a valid form. */
    private boolean ascend(int all) {
        for (int i = 1; i < iterations.length; i++) {
            if (iterations[i] < iterations[i - 1]) {
                return false;
            }
        }
        return iterations.length > 1 && iterations[0] == 0 && iterations[iterations.length - 1] == all;
    }

    private static final RawTree NONE = new RawTree();

    private ParsedTree parse(int number, int outputs) {
        RawTree t = trees.get(number);
        int nodes = t.left.length;
        if (nodes == 0
                || t.right.length != nodes
                || t.feature.length != nodes
                || t.condition.length != nodes
                || t.defaultLeft.length != nodes
                || (t.type.length != 0 && t.type.length != nodes)) {
            throw ParsedTree.bad(number, "has arrays of different lengths, or none");
        }
        leafWidth = number == 0 ? t.width : leafWidth;
        if (t.width != leafWidth) {
            throw ParsedTree.bad(number, "has leaves of " + t.width + " values, and the first tree of " + leafWidth);
        }
        if (t.width != 1 && t.width != outputs) {
            throw ParsedTree.bad(number, "has leaves of " + t.width + " values for " + outputs + " outputs");
        }
        int group = t.width > 1 ? 0 : groups[number];
        if (group < 0 || group >= outputs) {
            throw ParsedTree.bad(number, "adds to output " + group + " of " + outputs);
        }
        int @Nullable [] @Nullable [] sets = sets(number, t);
        // The file numbers nodes and leaves together; here each kind has its own numbers, leaves as complements.
        int[] place = new int[nodes];
        int inner = 0;
        int leaves = 0;
        for (int n = 0; n < nodes; n++) {
            place[n] = t.left[n] == MISSING ? ~leaves++ : inner++;
        }
        ParsedTree tree = new ParsedTree(
                new int[inner],
                new double[inner],
                new byte[inner],
                new boolean[inner],
                new int[inner],
                new int[inner],
                sets == null ? null : new int[inner][],
                new double[Math.multiplyExact(leaves, t.width)],
                t.width,
                group,
                null,
                t.cover.length == nodes ? new ParsedTree.Cover(new double[inner], new double[leaves]) : null);
        float weight = dropped.length == 0 ? 1 : dropped[number];
        for (int n = 0; n < nodes; n++) {
            int at = place[n];
            ParsedTree.Cover cover = tree.cover();
            if (cover != null) {
                (at < 0 ? cover.leaves() : cover.nodes())[at < 0 ? ~at : at] = t.cover[n];
            }
            if (at < 0) {
                leaf(number, t, n, ~at, weight, tree.values());
                continue;
            }
            int[] set = sets == null ? null : sets[n];
            if (sets != null && tree.categories() != null) {
                tree.categories()[at] = set;
            }
            boolean left = t.defaultLeft[n] != 0;
            tree.feature()[at] = t.feature[n] & Integer.MAX_VALUE;
            tree.threshold()[at] = set == null ? t.condition[n] : 0;
            tree.rule()[at] = set != null ? FeatureKeys.CATEGORY : left ? FeatureKeys.NAN_LEFT : FeatureKeys.NAN_RIGHT;
            tree.missingLeft()[at] = left;
            tree.left()[at] = child(number, t.left[n], place);
            tree.right()[at] = child(number, t.right[n], place);
        }
        tree.check(number, features);
        return tree;
    }

    private static int child(int number, int node, int[] place) {
        if (node <= 0 || node >= place.length) {
            throw ParsedTree.bad(number, "has a child " + node + " that does not exist");
        }
        return place[node];
    }

    private static void leaf(int number, RawTree t, int node, int leaf, float weight, double[] to) {
        if (t.width == 1) {
            to[leaf] = t.condition[node] * weight;
            return;
        }
        // Leaf vectors are stored by node, or, when there is 'leaf_weights', compactly: a leaf's right child
        // is its index.
        float[] from = t.leafWeights == null ? t.baseWeights : t.leafWeights;
        long at = (long) (t.leafWeights == null ? node : t.right[node]) * t.width;
        if (at < 0 || at + t.width > from.length) {
            throw ParsedTree.bad(number, "lacks the values of a leaf");
        }
        for (int w = 0; w < t.width; w++) {
            to[leaf * t.width + w] = from[(int) at + w] * weight;
        }
    }

    /** By node the bit set of its categories; null when no node has one. */
    private int @Nullable [] @Nullable [] sets(int number, RawTree t) {
        int count = t.categoryNodes.length;
        boolean anyCategorical = false;
        for (int type : t.type) {
            anyCategorical |= type == 1;
        }
        if (!anyCategorical) {
            return null;
        }
        if (t.categorySegments.length != count || t.categorySizes.length != count) {
            throw ParsedTree.bad(number, "has category arrays of different lengths");
        }
        int[] @Nullable [] sets = new int[t.left.length][];
        for (int i = 0; i < count; i++) {
            long from = t.categorySegments[i];
            long to = from + t.categorySizes[i];
            int node = t.categoryNodes[i];
            if (node < 0 || node >= sets.length || from < 0 || to < from || to > t.categories.length) {
                throw ParsedTree.bad(number, "has a category set that is out of range");
            }
            int greatest = -1;
            for (int c = (int) from; c < to; c++) {
                int category = t.categories[c];
                if (category < 0 || category >= 1 << 24) {
                    throw ParsedTree.bad(number, "has category " + category + " (expected: 0 to 16777215)");
                }
                greatest = Math.max(greatest, category);
            }
            int[] words = new int[(greatest >> 5) + 1];
            setWords += words.length;
            if (setWords > ForestBuilder.MOST_SET_WORDS) {
                throw ParsedTree.bad(number, "has too many or too large category sets");
            }
            for (int c = (int) from; c < to; c++) {
                words[t.categories[c] >> 5] |= 1 << (t.categories[c] & 31);
            }
            sets[node] = words;
        }
        for (int n = 0; n < sets.length; n++) {
            if (t.type[n] == 1 && t.left[n] != MISSING && sets[n] == null) {
                throw ParsedTree.bad(number, "lacks the categories of a split");
            }
            if (t.type[n] != 1) {
                sets[n] = null;
            }
        }
        return sets;
    }

    /** The initial margins. The file stores the base score as a prediction, so the link function is applied to it. */
    private double[] base(int outputs) {
        String text = baseScore.strip();
        boolean list = text.startsWith("[") && text.endsWith("]");
        String[] parts = (list ? text.substring(1, text.length() - 1) : text).split(",", -1);
        double[] base = new double[outputs];
        if (parts.length != 1 && parts.length != outputs) {
            throw bad("there are " + parts.length + " base scores for " + outputs + " outputs");
        }
        for (int i = 0; i < parts.length; i++) {
            try {
                base[i] = XgboostObjective.margin(objective, Float.parseFloat(parts[i].strip()));
            } catch (NumberFormatException e) {
                throw bad("base score '" + shortened(text) + "' is not a number");
            }
        }
        if (parts.length == 1) {
            Arrays.fill(base, base[0]);
        }
        return base;
    }

    static String shortened(String text) {
        return String.format(Locale.ROOT, "%.64s", text);
    }

    static ServingException bad(String what) {
        return ServingException.invalidArgument(what);
    }
}
