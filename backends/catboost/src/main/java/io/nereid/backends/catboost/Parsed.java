// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import io.nereid.tensor.DataType;
import java.util.List;

/**
 * What a model file says. Immutable.
 *
 * @param ensemble the trees
 * @param features columns in their order
 * @param loss the loss function, empty when the file does not tell
 * @param labels of the classes: texts or numbers; empty when it does not classify
 * @param labelType their type
 * @param threshold the sum above which a row is of the second of two classes
 */
record Parsed(
        Ensemble ensemble,
        List<Feature> features,
        String loss,
        List<Object> labels,
        DataType labelType,
        double threshold) {
    /** Whether each class is told by itself, and a row may be of several. */
    boolean manyLabels() {
        return loss.equals("MultiLogloss") || loss.equals("MultiCrossEntropy");
    }

    boolean classifies() {
        return !labels.isEmpty() || manyLabels();
    }

    boolean hasCategories() {
        return features.stream().anyMatch(Feature::categorical);
    }
}
