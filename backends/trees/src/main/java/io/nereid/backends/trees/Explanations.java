// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import io.nereid.backend.ModelInstance;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelMetadata.Signature;
import io.nereid.spi.TensorSpec;
import io.nereid.tensor.Shape;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The signature {@link #SIGNATURE} of a model: what each feature contributes to each sum of a row. Of a small model what
 * that needs is kept when it is loaded; of others the file is read again by the first request. Thread-safe: what is read
 * later is guarded by this.
 */
final class Explanations {
    /** The signature's name. */
    static final String SIGNATURE = "shap";
    /** Its one output. */
    static final String OUTPUT = "contributions";
    /** Its method: none that clients of other servers know. */
    static final String METHOD = "nereid/shap";

    /** Steps from the root to a leaf beyond which a row would take too much time, and its path too much memory. */
    private static final int DEEPEST = 1024;

    private final Origin origin;
    private final TreeConfig config;
    private final @Nullable String refusal;
    private final Map<String, Signature> signatures;
    private @Nullable TreeShap shap;

    /**
     * The file a model came from.
     *
     * @param file where it is
     * @param backend what reads it
     * @param size its bytes
     * @param modified when it was written last
     */
    record Origin(Path file, String backend, long size, long modified) {
        /** Larger files are read again when need be. */
        private static final long SMALL = 4 << 20;

        /** The origin as it is now. */
        static Origin of(Path file, String backend) {
            try {
                return new Origin(
                        file,
                        backend,
                        Files.size(file),
                        Files.getLastModifiedTime(file).toMillis());
            } catch (IOException e) {
                return new Origin(file, backend, -1, -1);
            }
        }

        boolean small() {
            return size <= SMALL;
        }
    }

    /**
     * For a model.
     *
     * @param origin where it was read from, with covers when it is small
     * @param parsed the trees that answer
     */
    Explanations(Origin origin, ParsedModel parsed, TreeConfig config) {
        this.origin = origin;
        this.config = config;
        this.refusal = refusal(parsed, origin.small());
        if (refusal == null && (origin.small() || parsed.weights() != null)) {
            shap = new TreeShap(parsed);
        }
        this.signatures = refusal == null ? Map.of(SIGNATURE, signature(parsed)) : Map.of();
    }

    private Signature signature(ParsedModel model) {
        Shape row = row(model);
        boolean rows = !config.config().batched() && !config.rowVector();
        return new Signature(
                METHOD,
                config.config().inputs(),
                List.of(new TensorSpec(OUTPUT, TreeConfig.type(model), rows ? row.prepend(-1) : row)),
                Map.of());
    }

    /** The shape of a row's contributions. */
    static Shape row(ParsedModel model) {
        return model.outputs() == 1
                ? Shape.of(model.features() + 1L)
                : Shape.of(model.outputs(), model.features() + 1L);
    }

    /** Why a model cannot be explained, or null. */
    private static @Nullable String refusal(ParsedModel model, boolean covers) {
        for (int i = 0; i < model.trees().size(); i++) {
            ParsedTree tree = model.trees().get(i);
            if (tree.linear() != null) {
                return "it has trees with linear models at their leaves (linear_tree)";
            }
            if (tree.width() > 1) {
                return "it has trees with vectors at their leaves (multi_strategy multi_output_tree)";
            }
            if (covers && tree.cover() == null) {
                return "its file does not tell how much of the training data came by each node of tree " + i
                        + (model.format().equals(ParsedModel.XGBOOST)
                                ? " (sum_hessian)"
                                : " (internal_count, leaf_count)");
            }
            if (TreeShap.depth(tree) > DEEPEST) {
                return "tree " + i + " is " + TreeShap.depth(tree) + " steps deep (expected: at most " + DEEPEST + ")";
            }
        }
        return null;
    }

    /** By name; empty for a model that cannot be explained. */
    Map<String, Signature> signatures() {
        return signatures;
    }

    /** Whether no file has to be read. */
    synchronized boolean atHand() {
        return shap != null || refusal != null;
    }

    /** @throws ServingException UNIMPLEMENTED for a model that cannot be explained */
    ModelInstance newInvocation(TreeModel model) {
        if (refusal != null) {
            throw refused(refusal);
        }
        return new ShapInvocation(model, this);
    }

    /** What computes them; the first call may read a file. */
    synchronized TreeShap shap() {
        TreeShap ready = shap;
        if (ready == null) {
            ready = read();
            shap = ready;
        }
        return ready;
    }

    private TreeShap read() {
        if (!Origin.of(origin.file(), origin.backend()).equals(origin)) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "model '" + config.config().name() + "' cannot be explained: its file '" + origin.file()
                            + "' is not the one any more that was loaded",
                    "load the model again");
        }
        ParsedModel parsed = TreeConfig.chosen(TreeFile.read(origin.file(), origin.backend(), true), config.config());
        String why = refusal(parsed, true);
        if (why != null) {
            throw refused(why);
        }
        return new TreeShap(parsed);
    }

    private ServingException refused(String why) {
        return ServingException.of(
                ErrorCode.UNIMPLEMENTED,
                "signature '" + SIGNATURE + "' of model '" + config.config().name() + "' is not there: " + why,
                "ask for an explanation that needs nothing but predictions, such as method kernel");
    }
}
