// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Interprets the metadata of a model beside its trees: columns, loss function, class labels and threshold. Stateless.
 */
final class ModelInfoReader {
    private static final Set<String> BINARY = Set.of("Logloss", "CrossEntropy", "Focal");
    private static final Set<String> MULTI = Set.of("MultiClass", "MultiClassOneVsAll");

    private ModelInfoReader() {}

    /**
     * Completes a model of its trees and metadata.
     *
     * @param about the file's {@code model_info}; {@code params} and {@code class_params} are objects
     * @throws ServingException INVALID_ARGUMENT when the parts are inconsistent
     */
    static ParsedModel of(
            TreeEnsemble ensemble, List<FeatureColumn> floats, List<FeatureColumn> categories, Map<?, ?> about) {
        List<FeatureColumn> all = new ArrayList<>(floats);
        all.addAll(categories);
        all.sort(Comparator.comparingInt(FeatureColumn::place));
        if (all.isEmpty()) {
            throw JsonModelReader.bad("it has no columns");
        }
        for (int i = 0; i < all.size(); i++) {
            if (all.get(i).place() != i) {
                throw JsonModelReader.bad("it has no column " + i);
            }
        }
        if (about.get("multiclass_params") != null && about.get("class_params") == null) {
            throw ServingException.invalidArgument(
                    "its class labels are in the form of old versions of CatBoost",
                    "load it with a current package of CatBoost and save it again");
        }
        String loss = "";
        if (about.get("params") instanceof Map<?, ?> p && p.get("loss_function") instanceof Map<?, ?> l) {
            loss = String.valueOf(l.get("type"));
        }
        List<Object> labels = new ArrayList<>();
        DataType type = DataType.INT64;
        if (about.get("class_params") instanceof Map<?, ?> classes) {
            String kind = String.valueOf(classes.get("class_label_type"));
            type = switch (kind) {
                case "String" -> DataType.BYTES;
                case "Float" -> DataType.FP64;
                case "Boolean" -> DataType.BOOL;
                default -> DataType.INT64;
            };
            for (Object name : JsonFields.list(classes.get("class_names"))) {
                labels.add(
                        type == DataType.BYTES
                                ? String.valueOf(name)
                                : name instanceof Boolean b ? (b ? 1.0 : 0.0) : JsonFields.number(name, "class_names"));
            }
        }
        // The file has no labels when the classes at training were the integers from 0.
        if (labels.isEmpty() && (BINARY.contains(loss) || MULTI.contains(loss))) {
            type = DataType.INT64;
            for (int i = 0; i < Math.max(2, ensemble.outputs()); i++) {
                labels.add((double) i);
            }
        }
        boolean several = loss.equals("MultiLogloss") || loss.equals("MultiCrossEntropy");
        int expected = ensemble.outputs() == 1 ? 2 : ensemble.outputs();
        if (!labels.isEmpty() && !several && labels.size() != expected) {
            throw JsonModelReader.bad("it has " + labels.size() + " classes for " + ensemble.outputs() + " sums");
        }
        double threshold = 0;
        Object given = about.get("binclass_probability_threshold");
        if (given != null) {
            double p;
            try {
                p = Double.parseDouble(String.valueOf(given));
            } catch (NumberFormatException e) {
                throw JsonModelReader.bad("'binclass_probability_threshold' is '" + given + "'");
            }
            threshold = Math.log(p / (1 - p));
        }
        return new ParsedModel(ensemble, all, loss, labels, type, threshold);
    }
}
