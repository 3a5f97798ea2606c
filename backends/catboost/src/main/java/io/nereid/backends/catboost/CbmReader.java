// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import io.nereid.backends.catboost.Ctr.Element;
import io.nereid.backends.catboost.Ctr.Part;
import io.nereid.backends.catboost.TreeEnsemble.Exact;
import io.nereid.base.ServingException;
import io.nereid.base.flatbuffers.FlatBuffersTable;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonValues;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Reads a model in CatBoost's binary format: the magic {@code CBM1}, the length and the FlatBuffers message of the
 * model, then the parts that it lists. The part with the counts of categorical features has one message per combination
 * (CTR base). Confined to one call.
 */
final class CbmReader {
    private static final String VERSION = "FlabuffersModel_v1";
    private static final String COUNTS = "static_provider_v1";
    private static final byte[] MAGIC = {'C', 'B', 'M', '1'};
    /** Marks an empty slot of a hash table. */
    private static final long NONE = -1;

    private static final int MOST_OUTPUTS = 1 << 14;

    private final List<FeatureColumn> floats = new ArrayList<>();
    private final List<FeatureColumn> categories = new ArrayList<>();
    private final List<Exact> exact = new ArrayList<>();
    private final List<Ctr> ctrs = new ArrayList<>();
    private final Map<Base, Ctr.Table> counted = new HashMap<>();
    /** By index of a split, the feature that it tests; {@link #bins} has the bin that it compares. */
    private int[] slots = {};

    private int[] bins = {};

    /** What CTR features share when they use the same counts. */
    private record Base(Ctr.Kind kind, List<Element> elements) {}

    private CbmReader() {}

    static boolean isCbm(byte[] bytes, int length) {
        return length >= MAGIC.length && Arrays.equals(bytes, 0, MAGIC.length, MAGIC, 0, MAGIC.length);
    }

    /**
     * Reads the model in the first {@code length} bytes.
     *
     * @throws ServingException INVALID_ARGUMENT for a damaged model, or one with unsupported features
     * @throws IndexOutOfBoundsException and similar, for a damaged model whose offsets point outside of it
     */
    static ParsedModel read(byte[] bytes, int length) {
        ByteBuffer file = ByteBuffer.wrap(bytes, 0, length).slice().order(ByteOrder.LITTLE_ENDIAN);
        return new CbmReader().model(file.position(MAGIC.length));
    }

    /** Reads the next message, which its length precedes. */
    private static FlatBuffersTable message(ByteBuffer file) {
        int length = file.getInt();
        if (length < 8 || length > file.remaining()) {
            throw JsonModelReader.bad(
                    "it is truncated within a part of " + Integer.toUnsignedString(length) + " bytes");
        }
        ByteBuffer part = file.slice(file.position(), length).order(ByteOrder.LITTLE_ENDIAN);
        file.position(file.position() + length);
        return FlatBuffersTable.root(part, ServingException::invalidArgument);
    }

    private ParsedModel model(ByteBuffer file) {
        FlatBuffersTable core = message(file);
        if (!core.text(0).equals(VERSION)) {
            throw JsonModelReader.bad("it is of the version '" + core.text(0) + "' (expected: '" + VERSION + "')");
        }
        FlatBuffersTable trees = core.table(1);
        if (trees == null) {
            throw JsonModelReader.bad("it has no trees");
        }
        if (!trees.tables(12).isEmpty()) {
            throw JsonModelReader.unsupported("text features");
        }
        if (!trees.tables(18).isEmpty() || !trees.tables(13).isEmpty()) {
            throw JsonModelReader.unsupported("embedding features");
        }
        for (String part : core.texts(3)) {
            if (!part.equals(COUNTS)) {
                throw JsonModelReader.unsupported("parts of the kind '" + part + "'");
            }
            columns(trees);
            for (int left = file.getInt(); left > 0; left--) {
                counts(message(file));
            }
        }
        if (floats.isEmpty() && categories.isEmpty()) {
            columns(trees);
        }
        splits(trees);
        return ModelInfoReader.of(ensemble(trees), floats, categories, about(core));
    }

    private void columns(FlatBuffersTable trees) {
        if (!floats.isEmpty() || !categories.isEmpty()) {
            throw JsonModelReader.bad("it has counts of categories twice");
        }
        for (FlatBuffersTable f : trees.tables(5)) {
            float[] borders = f.floats(3);
            for (int i = 0; i < borders.length; i++) {
                if (Float.isNaN(borders[i]) || (i > 0 && !(borders[i] > borders[i - 1]))) {
                    throw JsonModelReader.bad("borders of a column do not ascend");
                }
            }
            FeatureColumn.Nan nan = f.byteAt(5, 0) == 2 ? FeatureColumn.Nan.ABOVE : FeatureColumn.Nan.BELOW;
            floats.add(new FeatureColumn(f.text(4), place(f, 1, floats.size()), false, borders, nan));
        }
        for (FlatBuffersTable f : trees.tables(4)) {
            categories.add(new FeatureColumn(
                    f.text(2), place(f, 0, categories.size()), true, new float[0], FeatureColumn.Nan.BELOW));
        }
    }

    private static int place(FlatBuffersTable feature, int field, int number) {
        int place = feature.intAt(field + 1, -1);
        if (feature.intAt(field, -1) != number || place < 0) {
            throw ServingException.invalidArgument(
                    "its column indexes have gaps", "save the model without drop_unused_features()");
        }
        return place;
    }

    private Base base(@Nullable FlatBuffersTable base) {
        FlatBuffersTable combination = base == null ? null : base.table(0);
        if (base == null || combination == null) {
            throw JsonModelReader.bad("a combination of categories has no columns");
        }
        List<Element> elements = new ArrayList<>();
        for (int column : combination.ints(0)) {
            elements.add(new Element(Part.CATEGORY, JsonModelReader.within(categories, column), 0, 0));
        }
        ByteBuffer above = combination.vector(1, 8);
        while (above.hasRemaining()) {
            int column = JsonModelReader.within(floats, above.getInt());
            elements.add(new Element(Part.NUMBER_ABOVE, column, above.getFloat(), 0));
        }
        ByteBuffer is = combination.vector(2, 8);
        while (is.hasRemaining()) {
            elements.add(
                    new Element(Part.CATEGORY_IS, JsonModelReader.within(categories, is.getInt()), 0, is.getInt()));
        }
        int kind = base.byteAt(1, 0);
        if (kind < 0 || kind >= Ctr.Kind.values().length) {
            throw JsonModelReader.unsupported("combinations of the kind " + kind);
        }
        return new Base(Ctr.Kind.values()[kind], List.copyOf(elements));
    }

    /** Reads the counts of one CTR base: a hash table whose entries (hash, row number) refer to rows of a blob. */
    private void counts(FlatBuffersTable table) {
        Base base = base(table.table(0));
        int width = switch (base.kind()) {
            case BINARIZED_TARGET_MEAN_VALUE, FLOAT_TARGET_MEAN_VALUE -> 2;
            case COUNTER, FEATURE_FREQ -> 1;
            case BORDERS -> Math.max(2, table.intAt(4, 0));
            case BUCKETS -> Math.max(1, table.intAt(4, 0));
        };
        boolean mean = width == 2 && base.kind() != Ctr.Kind.BORDERS && base.kind() != Ctr.Kind.BUCKETS;
        ByteBuffer places = table.vector(1, 1);
        ByteBuffer blob = table.vector(2, 1);
        long rows = blob.limit() / (4L * width);
        int size = 0;
        for (int at = 0; at + 12 <= places.limit(); at += 12) {
            size += places.getLong(at) == NONE ? 0 : 1;
        }
        long[] hashes = new long[size];
        double[] counts = new double[Math.multiplyExact(size, width)];
        int n = 0;
        for (int at = 0; at + 12 <= places.limit(); at += 12) {
            if (places.getLong(at) == NONE) {
                continue;
            }
            hashes[n] = places.getLong(at);
            long row = Integer.toUnsignedLong(places.getInt(at + 8));
            if (row >= rows) {
                throw JsonModelReader.bad("a combination of categories has no counts");
            }
            for (int c = 0; c < width; c++) {
                int from = (int) (4 * (row * width + c));
                counts[n * width + c] = mean && c == 0 ? blob.getFloat(from) : blob.getInt(from);
            }
            n++;
        }
        counted.put(base, Ctr.Table.of(hashes, counts, width, table.intAt(3, 0)));
    }

    /**
     * Numbers all splits in CatBoost's order: borders of numeric columns, one-hot categories, borders of CTR features.
     */
    private void splits(FlatBuffersTable trees) {
        List<int[]> all = new ArrayList<>();
        for (int i = 0; i < floats.size(); i++) {
            for (int b = 0; b < floats.get(i).borders().length; b++) {
                all.add(new int[] {i, b});
            }
        }
        for (FlatBuffersTable one : trees.tables(6)) {
            int column = JsonModelReader.within(categories, one.intAt(0, -1));
            for (int value : one.ints(1)) {
                all.add(new int[] {floats.size() + exact.size(), 0});
                exact.add(new Exact(column, value));
            }
        }
        for (FlatBuffersTable one : trees.tables(7)) {
            FlatBuffersTable c = one.table(0);
            Base base = base(c == null ? null : c.table(0));
            Ctr.Table table = counted.get(base);
            if (c == null || table == null) {
                throw JsonModelReader.bad("a combination of categories has no counts");
            }
            float[] borders = one.floats(1);
            for (int b = 0; b < borders.length; b++) {
                all.add(new int[] {floats.size() + exact.size() + ctrs.size(), b});
            }
            ctrs.add(new Ctr(
                    table,
                    base.kind(),
                    base.elements(),
                    c.floatAt(2, 0),
                    c.floatAt(3, 1),
                    c.floatAt(4, 0),
                    c.floatAt(5, 1),
                    c.intAt(1, 0),
                    borders));
        }
        slots = all.stream().mapToInt(s -> s[0]).toArray();
        bins = all.stream().mapToInt(s -> s[1]).toArray();
    }

    private TreeEnsemble ensemble(FlatBuffersTable trees) {
        int outputs = trees.intAt(0, 0);
        int[] splitIndexes = trees.ints(1);
        int[] sizes = trees.ints(2);
        double[] leaves = trees.doubles(8);
        if (outputs < 1 || outputs > MOST_OUTPUTS || leaves.length % outputs != 0) {
            throw JsonModelReader.bad("it has " + leaves.length + " leaf values for " + outputs + " sums");
        }
        double[] biases = trees.doubles(16);
        if (biases.length == 0) {
            biases = new double[outputs];
            Arrays.fill(biases, trees.doubleAt(15, 0));
        }
        if (biases.length != outputs) {
            throw JsonModelReader.bad("it has " + biases.length + " biases for " + outputs + " sums");
        }
        double scale = trees.doubleAt(14, 1);
        ByteBuffer steps = trees.vector(10, 4);
        return steps.hasRemaining()
                ? nonSymmetric(steps, trees.ints(11), splitIndexes, sizes, leaves, outputs, scale, biases)
                : symmetric(splitIndexes, sizes, leaves, outputs, scale, biases);
    }

    private TreeEnsemble symmetric(
            int[] splitIndexes, int[] sizes, double[] leaves, int outputs, double scale, double[] biases) {
        int[] starts = new int[sizes.length + 1];
        int[] leafStarts = new int[sizes.length];
        int leaf = 0;
        for (int t = 0; t < sizes.length; t++) {
            if (sizes[t] < 0 || sizes[t] > 24) {
                throw JsonModelReader.bad("a tree has " + sizes[t] + " splits");
            }
            leafStarts[t] = leaf;
            starts[t + 1] = Math.addExact(starts[t], sizes[t]);
            leaf = Math.addExact(leaf, 1 << sizes[t]);
        }
        if (starts[sizes.length] != splitIndexes.length || (long) leaf * outputs != leaves.length) {
            throw JsonModelReader.bad("its trees have " + starts[sizes.length] + " splits and " + leaf + " leaves of "
                    + splitIndexes.length + " and " + leaves.length / outputs);
        }
        int[] splitSlots = new int[splitIndexes.length];
        int[] splitBins = new int[splitIndexes.length];
        for (int i = 0; i < splitIndexes.length; i++) {
            splitSlots[i] = slots[splitIndexes[i]];
            splitBins[i] = bins[splitIndexes[i]];
        }
        return new TreeEnsemble(
                floats,
                categories.size(),
                exact,
                ctrs,
                splitSlots,
                splitBins,
                starts,
                leafStarts,
                new int[0],
                new int[0],
                leaves,
                outputs,
                scale,
                biases);
    }

    /**
     * Reads non-symmetric trees. A node stores the offsets of its children for no and yes; an offset of 0 means that
     * this side is a leaf.
     */
    private TreeEnsemble nonSymmetric(
            ByteBuffer steps,
            int[] leafOf,
            int[] splitIndexes,
            int[] sizes,
            double[] leaves,
            int outputs,
            double scale,
            double[] biases) {
        int nodes = steps.limit() / 4;
        if (leafOf.length != nodes || splitIndexes.length != nodes) {
            throw JsonModelReader.bad("its trees have " + nodes + " nodes of " + splitIndexes.length);
        }
        int[] numbers = new int[nodes];
        int inner = 0;
        for (int i = 0; i < nodes; i++) {
            numbers[i] = steps.getInt(4 * i) == 0 ? ~leaf(leafOf[i], leaves.length, outputs) : inner++;
        }
        int[] starts = new int[sizes.length + 1];
        int[] leafStarts = new int[sizes.length];
        int[] splitSlots = new int[inner];
        int[] splitBins = new int[inner];
        int[] left = new int[inner];
        int[] right = new int[inner];
        int first = 0;
        int done = 0;
        for (int t = 0; t < sizes.length; t++) {
            int end = Math.addExact(first, sizes[t]);
            if (sizes[t] < 1 || end > nodes) {
                throw JsonModelReader.bad("a tree has " + sizes[t] + " nodes");
            }
            starts[t] = done;
            leafStarts[t] = numbers[first] < 0 ? ~numbers[first] : 0;
            if (numbers[first] < 0 && sizes[t] > 1) {
                throw JsonModelReader.bad("a tree of one leaf has " + sizes[t] + " nodes");
            }
            for (int i = first; i < end; i++) {
                if (numbers[i] >= 0) {
                    splitSlots[done] = slots[splitIndexes[i]];
                    splitBins[done] = bins[splitIndexes[i]];
                    int[] next = new int[2];
                    for (int side = 0; side < 2; side++) {
                        int far = Short.toUnsignedInt(steps.getShort(4 * i + 2 * side));
                        if (i + far >= end) {
                            throw JsonModelReader.bad("a node has a child outside of its tree");
                        }
                        next[side] = far == 0 ? ~leaf(leafOf[i], leaves.length, outputs) : numbers[i + far];
                    }
                    left[done] = next[0];
                    right[done++] = next[1];
                }
            }
            first = end;
        }
        starts[sizes.length] = done;
        if (first != nodes) {
            throw JsonModelReader.bad("its trees have " + first + " nodes of " + nodes);
        }
        return new TreeEnsemble(
                floats,
                categories.size(),
                exact,
                ctrs,
                splitSlots,
                splitBins,
                starts,
                leafStarts,
                left,
                right,
                leaves,
                outputs,
                scale,
                biases);
    }

    private static int leaf(int value, int values, int outputs) {
        if (value < 0 || value % outputs != 0 || value > values - outputs) {
            throw JsonModelReader.bad("a node uses leaf value " + Integer.toUnsignedString(value) + " of " + values);
        }
        return value / outputs;
    }

    /** The model's key-value metadata; some values are JSON documents. */
    private static Map<String, Object> about(FlatBuffersTable core) {
        Map<String, Object> about = new HashMap<>();
        for (FlatBuffersTable pair : core.tables(2)) {
            String key = pair.text(0);
            String value = pair.text(1);
            if (key.equals("params") || key.equals("class_params")) {
                byte[] text = value.getBytes(StandardCharsets.UTF_8);
                JsonReader in = new JsonReader(64);
                in.reset(Arrays.copyOf(text, text.length + JsonReader.SLACK), 0, text.length);
                Object document = JsonValues.read(in);
                about.put(key, document == null ? Map.of() : document);
            } else {
                about.put(key, value);
            }
        }
        return about;
    }
}
