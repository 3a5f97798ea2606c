// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.backend.ModelInstance;
import io.nereid.backends.trees.forest.ParsedModel;
import io.nereid.backends.trees.forest.ParsedTree;
import io.nereid.backends.trees.forest.TreeShap;
import io.nereid.backends.trees.format.TreeFile;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.Signature;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.Shape;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Provides the signature {@link #SIGNATURE} of a model: SHAP values, the contribution of each feature to each raw score
 * of a row. They need the parsed trees, which take more memory than the packed ones. So those of a small model are kept
 * from the load, and the file of a larger one is read again by the first request. Thread-safe: the explainer that is
 * read later is guarded by this.
 */
final class ShapExplainer {
    /** The signature's name. */
    static final String SIGNATURE = "shap";
    /** Its one output. */
    static final String OUTPUT = "contributions";
    /** Its method name, specific to this server. */
    static final String METHOD = "nereid/shap";

    /** The maximum depth of a tree: the time and memory of a row grow with its square. */
    private static final int DEEPEST = 1024;

    private final Origin origin;
    private final TreeConfig config;
    private final @Nullable String unsupportedReason;
    private final Map<String, Signature> signatures;

    @GuardedBy("this") private @Nullable TreeShap shap;

    /**
     * The file that a model was loaded from, with what identifies its content.
     *
     * @param file the path
     * @param backend the backend that reads it
     * @param size the size in bytes
     * @param modified the time of the last modification
     */
    record Origin(Path file, String backend, long size, long modified) {
        /** Larger files are read again on demand. */
        private static final long SMALL = 4 << 20;

        /** The current state of the file; -1 where it cannot be read. */
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
     * Creates the explainer of a model.
     *
     * @param origin the file that it was read from, with covers when the file is small
     * @param parsed the parsed model
     */
    ShapExplainer(Origin origin, ParsedModel parsed, TreeConfig config) {
        this.origin = origin;
        this.config = config;
        this.unsupportedReason = unsupportedReason(parsed, origin.small());
        if (unsupportedReason == null && (origin.small() || parsed.weights() != null)) {
            shap = new TreeShap(parsed);
        }
        this.signatures = unsupportedReason == null ? Map.of(SIGNATURE, signature(parsed)) : Map.of();
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

    /** The shape of the contributions of one row. */
    static Shape row(ParsedModel model) {
        return model.outputs() == 1
                ? Shape.of(model.features() + 1L)
                : Shape.of(model.outputs(), model.features() + 1L);
    }

    /** The reason why a model cannot be explained, or null. */
    private static @Nullable String unsupportedReason(ParsedModel model, boolean covers) {
        for (int i = 0; i < model.trees().size(); i++) {
            ParsedTree tree = model.trees().get(i);
            if (tree.linear() != null) {
                return "it has trees with linear models at their leaves (linear_tree)";
            }
            if (tree.width() > 1) {
                return "it has trees with vectors at their leaves (multi_strategy multi_output_tree)";
            }
            if (covers && tree.cover() == null) {
                return "its file does not store the weight of the training data at each node of tree " + i
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

    /** The signatures by name; empty for a model that cannot be explained. */
    Map<String, Signature> signatures() {
        return signatures;
    }

    /** Whether a request can run without reading the file again. */
    synchronized boolean atHand() {
        return shap != null || unsupportedReason != null;
    }

    /** @throws ServingException UNIMPLEMENTED for a model that cannot be explained */
    ModelInstance newInstance(TreeModel model) {
        if (unsupportedReason != null) {
            throw unavailable(unsupportedReason);
        }
        return new ShapModelInstance(model, this);
    }

    /** The explainer. The first call may read the file, while other calls wait. */
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
                            + "' has changed since it was loaded",
                    "load the model again");
        }
        ParsedModel parsed = TreeConfig.chosen(TreeFile.read(origin.file(), origin.backend(), true), config.config());
        String why = unsupportedReason(parsed, true);
        if (why != null) {
            throw unavailable(why);
        }
        return new TreeShap(parsed);
    }

    private ServingException unavailable(String why) {
        return ServingException.of(
                ErrorCode.UNIMPLEMENTED,
                "signature '" + SIGNATURE + "' of model '" + config.config().name() + "' is not available: " + why,
                "use a model-agnostic explainer, such as method kernel");
    }
}
