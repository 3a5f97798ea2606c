// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.boosting;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.base.ServingException;
import io.nereid.spi.Signature;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tensor.TensorScope;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.Nullable;

/**
 * A native model that another backend has loaded, as a function from table to table. Runs take an instance of the model
 * from a pool that grows to the number of concurrent runs, so that no run waits. Thread-safe.
 */
public final class LoadedBooster implements AutoCloseable {
    /** The backend's default signature. */
    static final String DEFAULT = "";

    /** The signature of each of the three backends whose output is the raw scores. */
    static final String MARGIN = "margin";

    private static final String FEATURE_NAMES = "feature_names";

    private final BackendModel model;
    private final String origin;
    private final float missing;
    private final boolean closed;
    /** By column, the number of each text category; the columns without are absent. */
    private final Map<Integer, Map<String, Integer>> codes = new HashMap<>();

    private final Map<String, Queue<ModelInstance>> idle = new ConcurrentHashMap<>();

    /**
     * @param model the loaded model, batched, which is owned by this object
     * @param file what it was loaded from
     */
    public LoadedBooster(BackendModel model, BoosterFile file) {
        this.model = model;
        this.origin = file.origin();
        this.missing = (float) file.missing();
        this.closed = file.closed();
        file.categories().forEach((column, texts) -> {
            Map<String, Integer> places = new HashMap<>();
            texts.forEach(text -> places.putIfAbsent(text, places.size()));
            codes.put(column, places);
        });
    }

    private List<TensorSpec> inputs() {
        return model.config().inputs();
    }

    /** Whether all columns are one input. */
    private boolean matrix() {
        return inputs().size() == 1
                && inputs().get(0).modelShape().rank() == 1
                && inputs().get(0).dataType() != DataType.BYTES;
    }

    /** The number of columns. */
    public int features() {
        return matrix() ? (int) inputs().get(0).modelShape().dim(0) : inputs().size();
    }

    /** The names of the columns; empty when the model does not store them. */
    public List<String> names() {
        String names = model.config().parameters().getOrDefault(FEATURE_NAMES, "");
        return names.isEmpty() ? List.of() : List.of(names.split(",", -1));
    }

    /** Whether a column has categories, which are texts. */
    public boolean takesText(int column) {
        return codes.containsKey(column) || (!matrix() && inputs().get(column).dataType() == DataType.BYTES);
    }

    /**
     * The table with the numbers of text categories; an empty text that is none of them is a missing value.
     *
     * @throws ServingException INVALID_ARGUMENT for another text that is none of them, where the library refuses it
     */
    private DataTable coded(DataTable table) {
        if (table.texts() == null || codes.isEmpty()) {
            return table;
        }
        double[] values = table.values().clone();
        @Nullable String[] texts = table.texts().clone();
        codes.forEach((column, places) -> {
            for (int i = column; i < values.length; i += table.columns()) {
                String text = texts[i];
                if (text != null) {
                    Integer code = places.get(text);
                    if (code == null && closed && !text.isEmpty()) {
                        throw unknown(column, text, places);
                    }
                    values[i] = code == null ? Double.NaN : code;
                    texts[i] = null;
                }
            }
        });
        return new DataTable(table.rows(), table.columns(), values, texts);
    }

    private ServingException unknown(int column, String text, Map<String, Integer> places) {
        List<String> names = names();
        List<String> known = places.keySet().stream().sorted().limit(20).toList();
        return ServingException.invalidArgument("column '"
                + (column < names.size() ? names.get(column) : String.valueOf(column)) + "' has the category '"
                + (text.length() > 40 ? text.substring(0, 40) + "…" : text) + "', which is not in the training set of "
                + origin + " (expected: " + String.join(", ", known) + (places.size() > 20 ? ", …" : "")
                + ", or an empty text for a missing one)");
    }

    /** The texts of the classes' labels, in order; empty when the model does not store them. */
    List<String> labels() {
        return model.config().labels().getOrDefault("predict_proba", List.of());
    }

    private TensorSpec output(String signature) {
        Signature named = model.signatures().get(signature);
        return named == null ? model.config().outputs().get(0) : named.outputs().get(0);
    }

    /** Values per row of a signature's output; 0 for a single value without a dimension of its own. */
    int width(String signature) {
        Shape shape = output(signature).modelShape();
        return shape.rank() == 0 ? 0 : (int) shape.dim(0);
    }

    DataType type(String signature) {
        return output(signature).dataType();
    }

    /**
     * The output of a signature for a table.
     *
     * @throws ServingException INVALID_ARGUMENT when the model rejects the rows
     */
    DataTable run(String signature, DataTable table) {
        Queue<ModelInstance> pool = idle.computeIfAbsent(signature, s -> new ConcurrentLinkedQueue<>());
        ModelInstance instance = pool.poll();
        if (instance == null) {
            instance = signature.equals(DEFAULT) ? model.newInstance() : model.newInstance(signature);
        }
        try (TensorScope tensors = new TensorScope()) {
            List<Tensor> in = feed(table, tensors);
            List<Tensor> out = instance.run(in, List.of(output(signature).name()));
            try {
                return table(out.get(0), table.rows());
            } finally {
                Tensor.closeAll(out);
            }
        } finally {
            pool.add(instance);
        }
    }

    private List<Tensor> feed(DataTable table, TensorScope tensors) {
        int rows = table.rows();
        if (matrix()) {
            TensorSpec spec = inputs().get(0);
            double[] x = present(coded(table).numbers(origin));
            return List.of(
                    tensors.add(Tensor.ofDoubles(spec.name(), spec.dataType(), Shape.of(rows, table.columns()), x)));
        }
        List<Tensor> columns = new ArrayList<>(table.columns());
        for (int c = 0; c < table.columns(); c++) {
            TensorSpec spec = inputs().get(c);
            columns.add(tensors.add(
                    spec.dataType() == DataType.BYTES ? categories(table, c, spec.name()) : numbers(table, c, spec)));
        }
        return columns;
    }

    /** The values with the model's own number for missing values replaced by NaN, as the library compares: in FP32. */
    private double[] present(double[] values) {
        if (Float.isNaN(missing)) {
            return values;
        }
        double[] x = values.clone();
        for (int i = 0; i < x.length; i++) {
            x[i] = (float) x[i] == missing ? Double.NaN : x[i];
        }
        return x;
    }

    private Tensor numbers(DataTable table, int column, TensorSpec spec) {
        double[] x = table.select(new int[] {column}).numbers(origin);
        return Tensor.ofDoubles(spec.name(), spec.dataType(), Shape.of(table.rows()), x);
    }

    private Tensor categories(DataTable table, int column, String name) {
        byte[][] texts = new byte[table.rows()][];
        for (int r = 0; r < texts.length; r++) {
            String text = table.text(r, column);
            texts[r] = (text == null ? category(table.at(r, column), name) : text).getBytes(StandardCharsets.UTF_8);
        }
        return Tensor.ofBytes(name, Shape.of(table.rows()), texts);
    }

    /** The text of a category that is a number: CatBoost takes integers by their decimal text, and nothing else. */
    private String category(double value, String column) {
        if (value != Math.rint(value) || Math.abs(value) > 1L << 53) {
            throw ServingException.invalidArgument(origin + " was given " + value + " for the category '" + column
                    + "' (expected: a text or an integer)");
        }
        return Long.toString((long) value);
    }

    private static DataTable table(Tensor tensor, int rows) {
        int columns = Math.max(1, (int) (tensor.shape().elementCount() / Math.max(1, rows)));
        DataTable table = DataTable.of(rows, columns);
        double[] to = table.values();
        ByteBuffer from = tensor.buffer();
        @Nullable String[] texts = tensor.dataType() == DataType.BYTES ? new String[to.length] : null;
        for (int i = 0; i < to.length; i++) {
            to[i] = switch (tensor.dataType()) {
                case FP32 -> from.getFloat();
                case FP64 -> from.getDouble();
                case INT64 -> from.getLong();
                case INT32 -> from.getInt();
                case BOOL -> from.get();
                default -> {
                    if (texts != null) {
                        byte[] text = new byte[from.getInt()];
                        from.get(text);
                        texts[i] = new String(text, StandardCharsets.UTF_8);
                    }
                    yield Double.NaN;
                }
            };
        }
        return texts == null ? table : new DataTable(rows, columns, to, texts);
    }

    /** The configuration under which the model is loaded: every row of a request in one batch, on any signature. */
    public static ModelConfig configuration(String model, BoosterFile file) {
        return ModelConfig.builder(model)
                .backend(file.backend())
                .modelFile(file.fileName())
                .parameters(file.parameters())
                .maxBatchSize(1 << 20)
                .build();
    }

    @Override
    public void close() {
        idle.values().forEach(pool -> pool.forEach(ModelInstance::close));
        model.close();
    }
}
