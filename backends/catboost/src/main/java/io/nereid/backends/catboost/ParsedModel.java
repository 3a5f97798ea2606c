// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import io.nereid.tensor.DataType;
import java.util.List;

/**
 * A model as read from its file. Immutable.
 *
 * @param ensemble the trees
 * @param features the columns in order
 * @param loss the loss function; empty when the file does not store it
 * @param labels the class labels, strings or numbers; empty when the model is not a classifier
 * @param labelType the type of the labels
 * @param threshold the raw score above which a row belongs to the second of two classes
 */
record ParsedModel(
        TreeEnsemble ensemble,
        List<FeatureColumn> features,
        String loss,
        List<Object> labels,
        DataType labelType,
        double threshold) {
    /** Whether the model is a multilabel classifier: a row can have several labels. */
    boolean manyLabels() {
        return loss.equals("MultiLogloss") || loss.equals("MultiCrossEntropy");
    }

    boolean classifies() {
        return !labels.isEmpty() || manyLabels();
    }

    boolean hasCategories() {
        return features.stream().anyMatch(FeatureColumn::categorical);
    }
}
