// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.backends.sklearn.boosting.BoosterEstimator;
import io.nereid.backends.sklearn.compose.ColumnUnion;
import io.nereid.backends.sklearn.compose.Passthrough;
import io.nereid.backends.sklearn.compose.Pipeline;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.featureextraction.CountVectorizer;
import io.nereid.backends.sklearn.pickle.PyList;
import io.nereid.backends.sklearn.pickle.PyNone;
import io.nereid.backends.sklearn.pickle.PyObject;
import io.nereid.backends.sklearn.preprocessing.CategoryEncoder;
import io.nereid.backends.sklearn.preprocessing.LabelBinarizer;
import io.nereid.backends.sklearn.preprocessing.LabelEncoder;
import io.nereid.backends.sklearn.preprocessing.SimpleImputer;
import io.nereid.backends.sklearn.preprocessing.TargetEncoder;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The columns that a whole model was fitted to: their names, and which of them hold text. Stateless. */
final class FittedColumns {
    private FittedColumns() {}

    /**
     * Whether each column holds text, derived from the transformers that consume it; null when {@code columns} is
     * unknown.
     */
    static boolean @Nullable [] texts(Estimator estimator, int columns) {
        if (columns < 0) {
            return null;
        }
        boolean[] texts = new boolean[columns];
        mark(estimator, texts);
        return texts;
    }

    private static void mark(Estimator estimator, boolean[] texts) {
        if (estimator instanceof Pipeline chain) {
            for (Estimator step : chain.first()) {
                mark(step, texts);
                if (!keeps(step)) {
                    return;
                }
            }
            mark(chain.last(), texts);
        } else if (estimator instanceof ColumnUnion parallel) {
            for (ColumnUnion.Part part : parallel.parts()) {
                markPart(part, texts);
            }
        } else if (estimator.before() != null) {
            mark(estimator.before(), texts);
        } else if (estimator instanceof BoosterEstimator booster) {
            for (int i = 0; i < texts.length; i++) {
                texts[i] |=
                        i < booster.booster().features() && booster.booster().takesText(i);
            }
        } else if (estimator instanceof CountVectorizer) {
            java.util.Arrays.fill(texts, true);
        } else if (estimator instanceof CategoryEncoder encoder && encoder.features() == texts.length) {
            for (int i = 0; i < texts.length; i++) {
                texts[i] |= encoder.takesText(i);
            }
        } else if (estimator instanceof TargetEncoder encoder && encoder.features() == texts.length) {
            for (int i = 0; i < texts.length; i++) {
                texts[i] |= encoder.takesText(i);
            }
        } else if (estimator instanceof LabelBinarizer labels) {
            java.util.Arrays.fill(texts, labels.takesText());
        } else if (estimator instanceof LabelEncoder labels) {
            java.util.Arrays.fill(texts, labels.takesText());
        }
    }

    /** Whether the transformer keeps the position of each column, so that the next one sees the same columns. */
    private static boolean keeps(Estimator e) {
        return e instanceof SimpleImputer || e instanceof Passthrough;
    }

    private static void markPart(ColumnUnion.Part part, boolean[] texts) {
        if (part.transformer() == null) {
            return;
        }
        int[] columns = part.columns();
        if (columns == null) {
            mark(part.transformer(), texts);
            return;
        }
        boolean[] mine = new boolean[columns.length];
        mark(part.transformer(), mine);
        for (int i = 0; i < mine.length; i++) {
            texts[columns[i]] |= mine[i];
        }
    }

    /** The names of the columns that the outermost estimator with names was fitted to; empty when there are none. */
    static List<String> namesOf(Object value, Estimator estimator) {
        List<String> names = namesOf(value);
        return names.isEmpty() && first(estimator) instanceof BoosterEstimator booster
                ? booster.booster().names()
                : names;
    }

    /** The estimator that gets the columns of the model. */
    private static Estimator first(Estimator estimator) {
        Estimator now = estimator;
        while (now instanceof Pipeline pipeline) {
            now = pipeline.first().isEmpty()
                    ? pipeline.last()
                    : pipeline.first().get(0);
        }
        return now;
    }

    private static List<String> namesOf(Object value) {
        Object now = value;
        for (int i = 0; i < 8 && now instanceof PyObject object; i++) {
            EstimatorAttributes fields = new EstimatorAttributes(object);
            List<String> names = fields.names();
            if (!names.isEmpty()) {
                return names;
            }
            Object steps = fields.any("steps");
            Object best = fields.any("best_estimator_");
            now = best != null
                    ? best
                    : steps instanceof PyList list && !list.items().isEmpty()
                            ? EstimatorAttributes.asList(list.items().get(0)).get(1)
                            : PyNone.NONE;
        }
        return List.of();
    }
}
