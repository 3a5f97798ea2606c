// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import io.nereid.backends.catboost.Ctr.Element;
import io.nereid.backends.catboost.Ctr.Part;
import io.nereid.backends.catboost.TreeEnsemble.Exact;
import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import io.nereid.json.JsonValues;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Reads a model in CatBoost's JSON format. Confined to one call. */
final class JsonModelReader {
    private static final int MOST_COLUMNS = 1 << 20;
    private static final int MOST_OUTPUTS = 1 << 14;
    private static final int DEEPEST = 512;

    private final JsonReader in = new JsonReader(DEEPEST);
    private @Nullable Map<?, ?> features;
    private @Nullable Map<?, ?> info;
    private final Map<String, Counted> counted = new HashMap<>();
    private final List<Split> splits = new ArrayList<>();
    private final Ints starts = new Ints();
    private final Ints leafStarts = new Ints();
    private final Ints left = new Ints();
    private final Ints right = new Ints();
    private double[] leaves = new double[64];
    private int leafValues;
    /** Values per leaf; 0 until the first leaf is read. */
    private int perLeaf;

    private boolean symmetric;
    private boolean trees;
    private double scale = 1;
    private double[] biases = {};

    private final List<FeatureColumn> floats = new ArrayList<>();
    private final List<FeatureColumn> categories = new ArrayList<>();
    private final List<Exact> exact = new ArrayList<>();
    private final List<Ctr> ctrs = new ArrayList<>();

    /** A split, as in the file. */
    private record Split(String type, int column, double border, int value, int index) {}

    /** The counts of a CTR base, as in the file. */
    private record Counted(int stride, double denominator, long[] hashes, double[] counts) {}

    /** A growable array of ints. Confined to one reader. */
    private static final class Ints {
        private int[] items = new int[64];
        private int size;

        int add(int value) {
            if (size == items.length) {
                items = Arrays.copyOf(items, size * 2);
            }
            items[size] = value;
            return size++;
        }

        int[] toArray() {
            return Arrays.copyOf(items, size);
        }
    }

    private JsonModelReader() {}

    /**
     * Reads the model in the first {@code length} bytes, which {@link JsonReader#SLACK} more bytes follow.
     *
     * @throws ServingException INVALID_ARGUMENT for a damaged model, or one with unsupported features
     */
    static ParsedModel read(byte[] bytes, int length) {
        JsonModelReader reader = new JsonModelReader();
        reader.in.reset(bytes, 0, length);
        reader.document();
        return reader.model();
    }

    private void document() {
        in.beginObject();
        while (in.nextField()) {
            switch (in.key()) {
                case "features_info" -> features = JsonFields.map(JsonValues.read(in));
                case "model_info" -> info = JsonFields.map(JsonValues.read(in));
                case "ctr_data" -> ctrData();
                case "oblivious_trees" -> symmetricTrees();
                case "trees" -> otherTrees();
                case "scale_and_bias" -> scaleAndBias();
                default -> in.skipValue();
            }
        }
        in.expectEnd();
    }

    private void scaleAndBias() {
        in.beginArray();
        if (in.hasNext()) {
            scale = in.readDouble();
        }
        if (in.hasNext()) {
            biases = doubles();
        }
        while (in.hasNext()) {
            in.skipValue();
        }
    }

    /** Reads an array of numbers, or a single number. */
    private double[] doubles() {
        if (in.peek() != JsonToken.ARRAY) {
            return new double[] {in.readDouble()};
        }
        double[] values = new double[16];
        int size = 0;
        in.beginArray();
        while (in.hasNext()) {
            if (size == values.length) {
                values = Arrays.copyOf(values, size * 2);
            }
            values[size++] = in.readDouble();
        }
        return Arrays.copyOf(values, size);
    }

    private void begin(boolean asSymmetric) {
        if (trees) {
            throw bad("it has trees twice");
        }
        trees = true;
        symmetric = asSymmetric;
    }

    private void symmetricTrees() {
        begin(true);
        in.beginArray();
        while (in.hasNext()) {
            starts.add(splits.size());
            double[] values = {};
            int levels = splits.size();
            in.beginObject();
            while (in.nextField()) {
                switch (in.key()) {
                    case "splits" -> {
                        if (!in.tryNull()) {
                            in.beginArray();
                            while (in.hasNext()) {
                                splits.add(split());
                            }
                        }
                    }
                    case "leaf_values" -> values = doubles();
                    default -> in.skipValue();
                }
            }
            levels = splits.size() - levels;
            if (levels > 24 || values.length == 0 || values.length % (1 << levels) != 0) {
                throw bad("a tree has " + levels + " splits and " + values.length + " leaf values");
            }
            leaf(values, values.length >> levels);
        }
        starts.add(splits.size());
    }

    /** Appends the leaves of a tree, and where they begin. */
    private void leaf(double[] values, int each) {
        leafStarts.add(append(values, each));
    }

    private int append(double[] values, int each) {
        if (perLeaf == 0) {
            perLeaf = each;
        }
        if (each != perLeaf || each < 1 || each > MOST_OUTPUTS) {
            throw bad("a leaf has " + each + " values, others have " + perLeaf);
        }
        int first = leafValues / perLeaf;
        if (leaves.length - leafValues < values.length) {
            leaves = Arrays.copyOf(leaves, Math.addExact(leafValues, Math.max(leafValues, values.length)));
        }
        System.arraycopy(values, 0, leaves, leafValues, values.length);
        leafValues += values.length;
        return first;
    }

    private void otherTrees() {
        begin(false);
        in.beginArray();
        while (in.hasNext()) {
            starts.add(splits.size());
            int root = node();
            leafStarts.add(root < 0 ? ~root : 0);
        }
        starts.add(splits.size());
    }

    /**
     * Reads a node and all below it; returns its index, or {@code ~leaf}. A node's index is less than its children's.
     */
    private int node() {
        int number = -1;
        int no = 0;
        int yes = 0;
        boolean inner = false;
        double[] values = {};
        Split split = null;
        int place = in.position();
        in.beginObject();
        boolean ordered = false;
        // In the file, children may come before the split, so the index is reserved first.
        while (in.nextField()) {
            String key = in.key();
            if (key.equals("left") || key.equals("right")) {
                if (number < 0) {
                    number = splits.size();
                    splits.add(new Split("", 0, 0, 0, 0));
                    left.add(0);
                    right.add(0);
                }
                inner = true;
                int child = node();
                if (key.equals("left")) {
                    no = child;
                } else {
                    yes = child;
                    ordered = true;
                }
            } else if (key.equals("split")) {
                split = split();
            } else if (key.equals("value")) {
                values = doubles();
            } else {
                in.skipValue();
            }
        }
        if (!inner) {
            return ~append(values, values.length);
        }
        if (split == null || !ordered) {
            throw bad("the node at byte " + place + " has no split, or only one child");
        }
        splits.set(number, split);
        left.items[number] = no;
        right.items[number] = yes;
        return number;
    }

    private Split split() {
        Map<?, ?> s = JsonFields.map(JsonValues.read(in));
        String type = String.valueOf(s.get("split_type"));
        int index = s.get("split_index") != null ? JsonFields.whole(s.get("split_index"), "split_index") : -1;
        return switch (type) {
            case "FloatFeature" ->
                new Split(
                        type,
                        JsonFields.whole(s.get("float_feature_index"), "float_feature_index"),
                        JsonFields.number(s.get("border"), "border"),
                        0,
                        index);
            case "OneHotFeature" ->
                new Split(
                        type,
                        JsonFields.whole(s.get("cat_feature_index"), "cat_feature_index"),
                        0,
                        JsonFields.whole(s.get("value"), "value"),
                        index);
            case "OnlineCtr" -> new Split(type, 0, JsonFields.number(s.get("border"), "border"), 0, index);
            default -> throw unsupported("splits of the type '" + type + "'");
        };
    }

    private void ctrData() {
        in.beginObject();
        while (in.nextField()) {
            String key = in.key();
            int stride = 0;
            double denominator = 0;
            List<Long> hashes = new ArrayList<>();
            double[] counts = new double[64];
            int size = 0;
            in.beginObject();
            while (in.nextField()) {
                switch (in.key()) {
                    case "counter_denominator" -> denominator = in.readDouble();
                    case "hash_stride" -> stride = in.readInt();
                    case "hash_map" -> {
                        in.beginArray();
                        while (in.hasNext()) {
                            // Hashes are strings in the file, because a JSON number does not hold 64 bits exactly.
                            if (in.peek() == JsonToken.STRING) {
                                hashes.add(hash(in.readString()));
                            } else {
                                counts = size == counts.length ? Arrays.copyOf(counts, size * 2) : counts;
                                counts[size++] = in.readDouble();
                            }
                        }
                    }
                    default -> in.skipValue();
                }
            }
            if (stride < 2 || (long) hashes.size() * (stride - 1) != size) {
                throw bad("counts of categories do not fit their stride of " + stride);
            }
            counted.put(
                    key,
                    new Counted(
                            stride,
                            denominator,
                            hashes.stream().mapToLong(Long::longValue).toArray(),
                            Arrays.copyOf(counts, size)));
        }
    }

    private static long hash(String text) {
        try {
            return Long.parseUnsignedLong(text);
        } catch (NumberFormatException e) {
            throw bad("a category's hash is '" + (text.length() > 40 ? text.substring(0, 40) + "…" : text) + "'");
        }
    }

    private ParsedModel model() {
        Map<?, ?> columns = features;
        if (columns == null || !trees) {
            throw bad("it has no 'features_info' or no trees");
        }
        for (String other : List.of("text_features", "embedding_features", "estimated_features")) {
            if (!JsonFields.list(columns.get(other)).isEmpty()) {
                throw unsupported(other.replace('_', ' '));
            }
        }
        Ints ctrOf = new Ints();
        Ints ctrBin = new Ints();
        int numbering = columns(columns);
        for (Object c : JsonFields.list(columns.get("ctrs"))) {
            Ctr ctr = ctr(JsonFields.map(c));
            for (int b = 0; b < ctr.borders().length; b++) {
                ctrOf.add(ctrs.size());
                ctrBin.add(b);
            }
            ctrs.add(ctr);
        }
        int outputs = Math.max(1, perLeaf);
        double[] added = biases.length == outputs ? biases : new double[outputs];
        if (biases.length == 1 && outputs > 1) {
            Arrays.fill(added, biases[0]);
        } else if (biases.length > 1 && biases.length != outputs) {
            throw bad("'scale_and_bias' has " + biases.length + " values (expected: " + outputs + ")");
        }
        int[] slots = new int[splits.size()];
        int[] bins = new int[splits.size()];
        Map<Exact, Integer> places = new HashMap<>();
        for (Split s : splits) {
            if (s.type().equals("OneHotFeature")) {
                Exact one = new Exact(s.column(), s.value());
                if (places.putIfAbsent(one, places.size()) == null) {
                    exact.add(one);
                }
            }
        }
        for (int i = 0; i < slots.length; i++) {
            Split s = splits.get(i);
            switch (s.type()) {
                case "FloatFeature" -> {
                    FeatureColumn f = floats.get(within(floats, s.column()));
                    slots[i] = s.column();
                    int found = Arrays.binarySearch(f.borders(), (float) s.border());
                    if (found < 0) {
                        throw bad("a split uses the border " + s.border() + ", which its column does not have");
                    }
                    bins[i] = found;
                }
                case "OneHotFeature" -> {
                    within(categories, s.column());
                    slots[i] = floats.size() + places.getOrDefault(new Exact(s.column(), s.value()), 0);
                }
                default -> {
                    int at = s.index() - numbering;
                    if (at < 0 || at >= ctrOf.size) {
                        throw bad("a split uses combination " + at + " of " + ctrOf.size);
                    }
                    slots[i] = floats.size() + exact.size() + ctrOf.items[at];
                    bins[i] = ctrBin.items[at];
                    float border = ctrs.get(ctrOf.items[at]).borders()[bins[i]];
                    if (border != (float) s.border()) {
                        throw bad("a split uses the border " + s.border() + " of a combination that has " + border);
                    }
                }
            }
        }
        TreeEnsemble ensemble = new TreeEnsemble(
                floats,
                categories.size(),
                exact,
                ctrs,
                slots,
                bins,
                starts.toArray(),
                leafStarts.toArray(),
                symmetric ? new int[0] : left.toArray(),
                symmetric ? new int[0] : right.toArray(),
                Arrays.copyOf(leaves, leafValues),
                outputs,
                scale,
                added);
        return ModelInfoReader.of(ensemble, floats, categories, info == null ? Map.of() : info);
    }

    /** Returns the column index after a range check. */
    static int within(List<FeatureColumn> all, int column) {
        if (column < 0 || column >= all.size()) {
            throw bad("a split uses column " + column + " of " + all.size());
        }
        return column;
    }

    /** Reads the columns; returns the number of splits that are numbered before those of CTR features. */
    private int columns(Map<?, ?> columns) {
        int numbering = 0;
        for (Object o : JsonFields.list(columns.get("float_features"))) {
            Map<?, ?> f = JsonFields.map(o);
            float[] borders = JsonFields.floats(f.get("borders"));
            for (int i = 1; i < borders.length; i++) {
                if (!(borders[i] > borders[i - 1])) {
                    throw bad("borders of a column do not ascend");
                }
            }
            numbering += borders.length;
            floats.add(new FeatureColumn(
                    name(f),
                    place(f),
                    false,
                    borders,
                    "AsTrue".equals(f.get("nan_value_treatment")) ? FeatureColumn.Nan.ABOVE : FeatureColumn.Nan.BELOW));
            indexed(f, floats.size() - 1);
        }
        for (Object o : JsonFields.list(columns.get("categorical_features"))) {
            Map<?, ?> f = JsonFields.map(o);
            numbering += JsonFields.list(f.get("values")).size();
            categories.add(new FeatureColumn(name(f), place(f), true, new float[0], FeatureColumn.Nan.BELOW));
            indexed(f, categories.size() - 1);
        }
        return numbering;
    }

    private static void indexed(Map<?, ?> feature, int place) {
        if (feature.get("feature_index") != null
                && JsonFields.whole(feature.get("feature_index"), "feature_index") != place) {
            throw bad("columns are not in order");
        }
    }

    private static String name(Map<?, ?> feature) {
        return feature.get("feature_name") instanceof String s
                ? s
                : feature.get("feature_id") instanceof String s ? s : "";
    }

    private static int place(Map<?, ?> feature) {
        int place = JsonFields.whole(feature.get("flat_feature_index"), "flat_feature_index");
        if (place < 0 || place >= MOST_COLUMNS) {
            throw bad("a column has the index " + place);
        }
        return place;
    }

    private Ctr ctr(Map<?, ?> c) {
        List<Element> elements = new ArrayList<>();
        for (Object o : JsonFields.list(c.get("elements"))) {
            Map<?, ?> e = JsonFields.map(o);
            String kind = String.valueOf(e.get("combination_element"));
            elements.add(
                    switch (kind) {
                        case "cat_feature_value" ->
                            new Element(Part.CATEGORY, column(e, "cat_feature_index", categories), 0, 0);
                        case "float_feature" ->
                            new Element(
                                    Part.NUMBER_ABOVE,
                                    column(e, "float_feature_index", floats),
                                    (float) JsonFields.number(e.get("border"), "border"),
                                    0);
                        case "cat_feature_exact_value" ->
                            new Element(
                                    Part.CATEGORY_IS,
                                    column(e, "cat_feature_index", categories),
                                    0,
                                    JsonFields.whole(
                                            e.get("value") != null ? e.get("value") : e.get("exact_value"), "value"));
                        default -> throw unsupported("combinations with '" + kind + "'");
                    });
        }
        elements.sort(Comparator.comparing(Element::kind));
        String type = String.valueOf(c.get("ctr_type"));
        Ctr.Kind kind = null;
        for (Ctr.Kind k : Ctr.Kind.values()) {
            kind = k.name().replace("_", "").equals(type.toUpperCase(Locale.ROOT)) ? k : kind;
        }
        if (kind == null) {
            throw unsupported("combinations of the type '" + type + "'");
        }
        Counted counts = counted.get(String.valueOf(c.get("identifier")));
        if (counts == null) {
            throw bad("a combination of categories has no counts in 'ctr_data'");
        }
        Ctr.Table table =
                Ctr.Table.of(counts.hashes(), counts.counts(), counts.stride() - 1, (float) counts.denominator());
        boolean mean = kind == Ctr.Kind.BINARIZED_TARGET_MEAN_VALUE || kind == Ctr.Kind.FLOAT_TARGET_MEAN_VALUE;
        if (mean && table.width() != 2) {
            throw bad("a combination has " + table.width() + " counts (expected: a sum and a count)");
        }
        Object target = c.get("target_border_idx");
        return new Ctr(
                table,
                kind,
                List.copyOf(elements),
                (float) JsonFields.number(c.get("prior_numerator"), "prior_numerator"),
                (float) JsonFields.number(
                        c.get("prior_denomerator") != null ? c.get("prior_denomerator") : c.get("prior_denominator"),
                        "prior_denomerator"),
                (float) JsonFields.number(c.get("shift"), "shift"),
                (float) JsonFields.number(c.get("scale"), "scale"),
                target == null ? 0 : JsonFields.whole(target, "target_border_idx"),
                JsonFields.floats(c.get("borders")));
    }

    private static int column(Map<?, ?> element, String key, List<FeatureColumn> all) {
        return within(all, JsonFields.whole(element.get(key), key));
    }

    static ServingException bad(String what) {
        return ServingException.invalidArgument(what);
    }

    static ServingException unsupported(String what) {
        return ServingException.invalidArgument(
                what + " are not supported",
                "train the model without them, or serve it as a Python model (model.py) with the package catboost");
    }
}
