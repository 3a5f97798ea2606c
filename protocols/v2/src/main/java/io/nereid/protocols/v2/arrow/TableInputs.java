// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.arrow;

import io.nereid.base.ServingException;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Makes the inputs of a model from a table. A column is the input of its name; where the model's only input is a matrix
 * and no column has its name, the columns are the features of the rows. Confined to one thread; used for one request.
 */
final class TableInputs {
    /** The property of a model with the names of its features, separated by commas. */
    private static final String FEATURE_NAMES = "feature_names";

    /** Names that libraries give features that were trained without names: they say no more than the order does. */
    private static final Pattern GENERATED = Pattern.compile("(Column_|column_|f|x)[0-9]+|[0-9]+");

    private static final int MOST_SHOWN = 20;

    private final ArrowTable table;
    private final ModelMetadata metadata;
    private final List<TensorSpec> specs;
    private final ColumnTensors tensors;

    TableInputs(ArrowTable table, ModelMetadata metadata, List<TensorSpec> specs, ColumnTensors tensors) {
        this.table = table;
        this.metadata = metadata;
        this.specs = specs;
        this.tensors = tensors;
    }

    /** Adds the inputs to a list, whose tensors the caller owns, also when this method throws. */
    void addTo(List<Tensor> inputs) {
        if (table.columns().isEmpty()) {
            throw ServingException.invalidArgument(
                    "the table has no columns (expected: a column for each input or feature of model '"
                            + metadata.id().model() + "')");
        }
        TensorSpec matrix = matrix();
        if (matrix != null) {
            inputs.add(tensors.matrix(features(matrix), matrix.name(), matrix.dataType(), table.rows()));
            return;
        }
        for (ArrowColumn column : table.columns()) {
            ArrowField field = column.field();
            TensorSpec spec = find(field.name());
            DataType type = spec == null ? field.type() : spec.dataType();
            inputs.add(tensors.of(column, field.name(), type, shape(field, spec)));
        }
    }

    private @Nullable TensorSpec find(String name) {
        for (int i = 0; i < specs.size(); i++) {
            if (specs.get(i).name().equals(name)) {
                return specs.get(i);
            }
        }
        return null;
    }

    /** The shape of a column as a tensor, with or without a dimension of size 1 as the input has it. */
    private Shape shape(ArrowField field, @Nullable TensorSpec spec) {
        Shape natural = field.row().prepend(table.rows());
        if (spec == null || (spec.unchecked() && spec.shape().rank() == 0)) {
            return natural;
        }
        int rank = spec.shape().rank();
        if (rank == 2 && natural.rank() == 1) {
            return Shape.of(table.rows(), 1);
        }
        if (rank == 1 && natural.rank() == 2 && natural.dim(1) == 1) {
            return Shape.of(table.rows());
        }
        return natural;
    }

    /** The only input, when the columns are its features; else null. */
    private @Nullable TensorSpec matrix() {
        if (specs.size() != 1) {
            return null;
        }
        TensorSpec only = specs.get(0);
        int rank = only.shape().rank();
        if (rank != 2 && !(only.unchecked() && rank == 0)) {
            return null;
        }
        if (table.columns().size() == 1 && table.columns().get(0).field().row().rank() > 0) {
            // the rows themselves: a tabular model takes them under any name
            return null;
        }
        for (ArrowColumn column : table.columns()) {
            if (column.field().name().equals(only.name())) {
                return null;
            }
        }
        return only;
    }

    /** The columns in the order of the model's features. */
    private List<ArrowColumn> features(TensorSpec matrix) {
        for (ArrowColumn column : table.columns()) {
            if (column.field().row().rank() > 0) {
                throw ServingException.invalidArgument(
                        column.field().label() + " has lists, which cannot be a feature of input '" + matrix.name()
                                + "'",
                        "name it '" + matrix.name() + "' if its lists are the rows");
            }
        }
        List<String> names = names();
        List<ArrowColumn> columns = names.isEmpty() ? table.columns() : byName(names);
        long width = matrix.shape().rank() == 2 ? matrix.shape().dim(1) : -1;
        if (width >= 0 && width != columns.size()) {
            throw ServingException.invalidArgument(
                    "a table of " + columns.size() + " columns does not fit input '" + matrix.name() + "' of shape "
                            + matrix.shape() + " of model '" + metadata.id().model() + "'",
                    hasPandasIndex()
                            ? "leave the index of the data frame out: pa.Table.from_pandas(frame, preserve_index=False)"
                            : "send a column for each feature, in the order of the training data");
        }
        return columns;
    }

    private boolean hasPandasIndex() {
        return table.columns().stream().anyMatch(c -> c.field().name().startsWith("__index_level_"));
    }

    /** The names of the model's features; empty when it does not know them, or only such that a library generated. */
    private List<String> names() {
        String known = metadata.properties().getOrDefault(FEATURE_NAMES, "");
        if (known.isEmpty()) {
            return List.of();
        }
        List<String> names = List.of(known.split(",", -1));
        return names.stream().allMatch(name -> GENERATED.matcher(name).matches()) ? List.of() : names;
    }

    private List<ArrowColumn> byName(List<String> names) {
        Map<String, ArrowColumn> given = new HashMap<>();
        for (ArrowColumn column : table.columns()) {
            if (given.put(column.field().name(), column) != null) {
                throw ServingException.invalidArgument(
                        "the table has more than one " + column.field().label());
            }
        }
        List<ArrowColumn> columns = new ArrayList<>(names.size());
        List<String> missing = new ArrayList<>();
        for (String name : names) {
            ArrowColumn column = given.remove(name);
            if (column == null) {
                missing.add(name);
            } else {
                columns.add(column);
            }
        }
        if (!missing.isEmpty()) {
            throw ServingException.invalidArgument(
                    "the table has no column for the features " + shown(missing) + " of model '"
                            + metadata.id().model() + "'",
                    given.isEmpty()
                            ? "send a column for each feature of the training data"
                            : "rename its columns, of which these are not features: "
                                    + shown(List.copyOf(given.keySet())));
        }
        if (!given.isEmpty()) {
            throw ServingException.invalidArgument(
                    "the table has columns that are not features of model '"
                            + metadata.id().model() + "': " + shown(List.copyOf(given.keySet())),
                    hasPandasIndex()
                            ? "leave the index of the data frame out: pa.Table.from_pandas(frame, preserve_index=False)"
                            : "leave them out, such as with table.select(names)");
        }
        return columns;
    }

    private static String shown(List<String> names) {
        List<String> first = names.size() > MOST_SHOWN ? names.subList(0, MOST_SHOWN) : names;
        return first + (names.size() > MOST_SHOWN ? " and more" : "");
    }
}
