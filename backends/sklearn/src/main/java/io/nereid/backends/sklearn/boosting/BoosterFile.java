// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.boosting;

import java.util.List;
import java.util.Map;

/**
 * The native model of a gradient boosting library, as its Python objects store it in a pickle. Immutable; the content
 * must not be modified.
 *
 * @param origin the class of the Python object, for messages
 * @param backend the backend that computes it: {@code xgboost}, {@code lightgbm} or {@code catboost}
 * @param fileName a name that this backend accepts for such a file
 * @param content the bytes of the file
 * @param parameters parameters of the backend's configuration that select what the object's {@code predict} computes
 * @param missing the number that stands for a missing value, besides NaN; NaN for none
 * @param categories the texts of the columns that had text categories in training, by column; each stands for its place
 * @param closed whether a text that is not among them is refused; else it is a missing value
 */
public record BoosterFile(
        String origin,
        String backend,
        String fileName,
        byte[] content,
        Map<String, String> parameters,
        double missing,
        Map<Integer, List<String>> categories,
        boolean closed) {
    /** A model without text categories. */
    BoosterFile(
            String origin,
            String backend,
            String fileName,
            byte[] content,
            Map<String, String> parameters,
            double missing) {
        this(origin, backend, fileName, content, parameters, missing, Map.of(), false);
    }
}
