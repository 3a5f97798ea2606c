// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import io.nereid.backends.catboost.Ctr.Element;
import io.nereid.backends.catboost.Ctr.Part;
import io.nereid.backends.catboost.Ensemble.Exact;
import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
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
 * Reads a model from the binary format: {@code CBM1}, the length and the FlatBuffers message of the model, then the parts
 * that it names, of which what was counted of categories is one message for each kind of combination. Confined to one call.
 */
final class CbmReader {
    private static final String VERSION = "FlabuffersModel_v1";
    private static final String COUNTS = "static_provider_v1";
    private static final byte[] MAGIC = {'C', 'B', 'M', '1'};
    /** A place of a table of hashes that holds none. */
    private static final long NONE = -1;

    private static final int MOST_OUTPUTS = 1 << 14;

    private final List<Feature> floats = new ArrayList<>();
    private final List<Feature> categories = new ArrayList<>();
    private final List<Exact> exact = new ArrayList<>();
    private final List<Ctr> ctrs = new ArrayList<>();
    private final Map<Base, Ctr.Table> counted = new HashMap<>();
    /** By number of a split its slot and what is asked of it. */
    private int[] slots = {};

    private int[] bins = {};

    /** What combinations have in common that count alike. */
    private record Base(Ctr.Kind kind, List<Element> elements) {}

    private CbmReader() {}

    static boolean isCbm(byte[] bytes, int length) {
        return length >= MAGIC.length && Arrays.equals(bytes, 0, MAGIC.length, MAGIC, 0, MAGIC.length);
    }

    /**
     * The model in the first {@code length} bytes.
     *
     * @throws ServingException INVALID_ARGUMENT for what is damaged, or has what is not served
     * @throws IndexOutOfBoundsException and other faults of looking where nothing is, for what is damaged
     */
    static Parsed read(byte[] bytes, int length) {
        ByteBuffer file = ByteBuffer.wrap(bytes, 0, length).slice().order(ByteOrder.LITTLE_ENDIAN);
        return new CbmReader().model(file.position(MAGIC.length));
    }

    /** The next so many bytes, whose number stands before them. */
    private static FlatTable message(ByteBuffer file) {
        int length = file.getInt();
        if (length < 8 || length > file.remaining()) {
            throw ModelReader.bad("it ends within a part of " + Integer.toUnsignedString(length) + " bytes");
        }
        ByteBuffer part = file.slice(file.position(), length).order(ByteOrder.LITTLE_ENDIAN);
        file.position(file.position() + length);
        return FlatTable.root(part);
    }

    private Parsed model(ByteBuffer file) {
        FlatTable core = message(file);
        if (!core.text(0).equals(VERSION)) {
            throw ModelReader.bad("it is of the version '" + core.text(0) + "' (expected: '" + VERSION + "')");
        }
        FlatTable trees = core.table(1);
        if (trees == null) {
            throw ModelReader.bad("it has no trees");
        }
        if (!trees.tables(12).isEmpty()) {
            throw ModelReader.unsupported("text features");
        }
        if (!trees.tables(18).isEmpty() || !trees.tables(13).isEmpty()) {
            throw ModelReader.unsupported("embedding features");
        }
        for (String part : core.texts(3)) {
            if (!part.equals(COUNTS)) {
                throw ModelReader.unsupported("parts of the kind '" + part + "'");
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
        return Description.of(ensemble(trees), floats, categories, about(core));
    }

    private void columns(FlatTable trees) {
        if (!floats.isEmpty() || !categories.isEmpty()) {
            throw ModelReader.bad("it has counts of categories twice");
        }
        for (FlatTable f : trees.tables(5)) {
            float[] borders = f.reals(3);
            for (int i = 0; i < borders.length; i++) {
                if (Float.isNaN(borders[i]) || (i > 0 && !(borders[i] > borders[i - 1]))) {
                    throw ModelReader.bad("borders of a column do not ascend");
                }
            }
            Feature.Nan nan = f.small(5, 0) == 2 ? Feature.Nan.ABOVE : Feature.Nan.BELOW;
            floats.add(new Feature(f.text(4), place(f, 1, floats.size()), false, borders, nan));
        }
        for (FlatTable f : trees.tables(4)) {
            categories.add(
                    new Feature(f.text(2), place(f, 0, categories.size()), true, new float[0], Feature.Nan.BELOW));
        }
    }

    private static int place(FlatTable feature, int field, int number) {
        int place = feature.whole(field + 1, -1);
        if (feature.whole(field, -1) != number || place < 0) {
            throw ServingException.invalidArgument(
                    "its columns have gaps", "save the model without drop_unused_features()");
        }
        return place;
    }

    private Base base(@Nullable FlatTable base) {
        FlatTable combination = base == null ? null : base.table(0);
        if (base == null || combination == null) {
            throw ModelReader.bad("a combination of categories has no columns");
        }
        List<Element> elements = new ArrayList<>();
        for (int column : combination.wholes(0)) {
            elements.add(new Element(Part.CATEGORY, ModelReader.within(categories, column), 0, 0));
        }
        ByteBuffer above = combination.list(1, 8);
        while (above.hasRemaining()) {
            int column = ModelReader.within(floats, above.getInt());
            elements.add(new Element(Part.NUMBER_ABOVE, column, above.getFloat(), 0));
        }
        ByteBuffer is = combination.list(2, 8);
        while (is.hasRemaining()) {
            elements.add(new Element(Part.CATEGORY_IS, ModelReader.within(categories, is.getInt()), 0, is.getInt()));
        }
        int kind = base.small(1, 0);
        if (kind < 0 || kind >= Ctr.Kind.values().length) {
            throw ModelReader.unsupported("combinations of the kind " + kind);
        }
        return new Base(Ctr.Kind.values()[kind], List.copyOf(elements));
    }

    private void counts(FlatTable table) {
        Base base = base(table.table(0));
        int width = switch (base.kind()) {
            case BINARIZED_TARGET_MEAN_VALUE, FLOAT_TARGET_MEAN_VALUE -> 2;
            case COUNTER, FEATURE_FREQ -> 1;
            case BORDERS -> Math.max(2, table.whole(4, 0));
            case BUCKETS -> Math.max(1, table.whole(4, 0));
        };
        boolean mean = width == 2 && base.kind() != Ctr.Kind.BORDERS && base.kind() != Ctr.Kind.BUCKETS;
        ByteBuffer places = table.list(1, 1);
        ByteBuffer blob = table.list(2, 1);
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
                throw ModelReader.bad("a combination of categories has no counts");
            }
            for (int c = 0; c < width; c++) {
                int from = (int) (4 * (row * width + c));
                counts[n * width + c] = mean && c == 0 ? blob.getFloat(from) : blob.getInt(from);
            }
            n++;
        }
        counted.put(base, Ctr.Table.of(hashes, counts, width, table.whole(3, 0)));
    }

    /** Numbers what trees may ask: each border of a number, each category of its own, each border of a combination. */
    private void splits(FlatTable trees) {
        List<int[]> all = new ArrayList<>();
        for (int i = 0; i < floats.size(); i++) {
            for (int b = 0; b < floats.get(i).borders().length; b++) {
                all.add(new int[] {i, b});
            }
        }
        for (FlatTable one : trees.tables(6)) {
            int column = ModelReader.within(categories, one.whole(0, -1));
            for (int value : one.wholes(1)) {
                all.add(new int[] {floats.size() + exact.size(), 0});
                exact.add(new Exact(column, value));
            }
        }
        for (FlatTable one : trees.tables(7)) {
            FlatTable c = one.table(0);
            Base base = base(c == null ? null : c.table(0));
            Ctr.Table table = counted.get(base);
            if (c == null || table == null) {
                throw ModelReader.bad("a combination of categories was not counted");
            }
            float[] borders = one.reals(1);
            for (int b = 0; b < borders.length; b++) {
                all.add(new int[] {floats.size() + exact.size() + ctrs.size(), b});
            }
            ctrs.add(new Ctr(
                    table,
                    base.kind(),
                    base.elements(),
                    c.real(2, 0),
                    c.real(3, 1),
                    c.real(4, 0),
                    c.real(5, 1),
                    c.whole(1, 0),
                    borders));
        }
        slots = all.stream().mapToInt(s -> s[0]).toArray();
        bins = all.stream().mapToInt(s -> s[1]).toArray();
    }

    private Ensemble ensemble(FlatTable trees) {
        int outputs = trees.whole(0, 0);
        int[] asked = trees.wholes(1);
        int[] sizes = trees.wholes(2);
        double[] leaves = trees.wides(8);
        if (outputs < 1 || outputs > MOST_OUTPUTS || leaves.length % outputs != 0) {
            throw ModelReader.bad("it has " + leaves.length + " leaf values for " + outputs + " sums");
        }
        double[] biases = trees.wides(16);
        if (biases.length == 0) {
            biases = new double[outputs];
            Arrays.fill(biases, trees.wide(15, 0));
        }
        if (biases.length != outputs) {
            throw ModelReader.bad("it has " + biases.length + " biases for " + outputs + " sums");
        }
        double scale = trees.wide(14, 1);
        ByteBuffer steps = trees.list(10, 4);
        return steps.hasRemaining()
                ? others(steps, trees.wholes(11), asked, sizes, leaves, outputs, scale, biases)
                : symmetric(asked, sizes, leaves, outputs, scale, biases);
    }

    private Ensemble symmetric(int[] asked, int[] sizes, double[] leaves, int outputs, double scale, double[] biases) {
        int[] starts = new int[sizes.length + 1];
        int[] leafStarts = new int[sizes.length];
        int leaf = 0;
        for (int t = 0; t < sizes.length; t++) {
            if (sizes[t] < 0 || sizes[t] > 24) {
                throw ModelReader.bad("a tree has " + sizes[t] + " splits");
            }
            leafStarts[t] = leaf;
            starts[t + 1] = Math.addExact(starts[t], sizes[t]);
            leaf = Math.addExact(leaf, 1 << sizes[t]);
        }
        if (starts[sizes.length] != asked.length || (long) leaf * outputs != leaves.length) {
            throw ModelReader.bad("its trees have " + starts[sizes.length] + " splits and " + leaf + " leaves of "
                    + asked.length + " and " + leaves.length / outputs);
        }
        int[] splitSlots = new int[asked.length];
        int[] splitBins = new int[asked.length];
        for (int i = 0; i < asked.length; i++) {
            splitSlots[i] = slots[asked[i]];
            splitBins[i] = bins[asked[i]];
        }
        return new Ensemble(
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

    /** Nodes say how far it is to what follows a no and a yes; nothing follows a leaf, and either side may be one. */
    private Ensemble others(
            ByteBuffer steps,
            int[] leafOf,
            int[] asked,
            int[] sizes,
            double[] leaves,
            int outputs,
            double scale,
            double[] biases) {
        int nodes = steps.limit() / 4;
        if (leafOf.length != nodes || asked.length != nodes) {
            throw ModelReader.bad("its trees have " + nodes + " nodes of " + asked.length);
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
                throw ModelReader.bad("a tree has " + sizes[t] + " nodes");
            }
            starts[t] = done;
            leafStarts[t] = numbers[first] < 0 ? ~numbers[first] : 0;
            if (numbers[first] < 0 && sizes[t] > 1) {
                throw ModelReader.bad("a tree of one leaf has " + sizes[t] + " nodes");
            }
            for (int i = first; i < end; i++) {
                if (numbers[i] >= 0) {
                    splitSlots[done] = slots[asked[i]];
                    splitBins[done] = bins[asked[i]];
                    int[] next = new int[2];
                    for (int side = 0; side < 2; side++) {
                        int far = Short.toUnsignedInt(steps.getShort(4 * i + 2 * side));
                        if (i + far >= end) {
                            throw ModelReader.bad("a node leads out of its tree");
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
            throw ModelReader.bad("its trees have " + first + " nodes of " + nodes);
        }
        return new Ensemble(
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
            throw ModelReader.bad("a node asks for leaf value " + Integer.toUnsignedString(value) + " of " + values);
        }
        return value / outputs;
    }

    /** What the file says of itself, of which some are documents. */
    private static Map<String, Object> about(FlatTable core) {
        Map<String, Object> about = new HashMap<>();
        for (FlatTable pair : core.tables(2)) {
            String key = pair.text(0);
            String value = pair.text(1);
            if (key.equals("params") || key.equals("class_params")) {
                byte[] text = value.getBytes(StandardCharsets.UTF_8);
                JsonReader in = new JsonReader(64);
                in.reset(Arrays.copyOf(text, text.length + JsonReader.SLACK), 0, text.length);
                Object document = Json.value(in);
                about.put(key, document == null ? Map.of() : document);
            } else {
                about.put(key, value);
            }
        }
        return about;
    }
}
