// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.trees.forest.ParsedModel;
import io.nereid.backends.trees.format.TreeFile;
import io.nereid.spi.config.ModelConfig;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The common base of the XGBoost and LightGBM backends. Thread-safe: has no state. */
abstract class TreesBackend implements Backend {
    private final String name;
    private final List<String> files;

    TreesBackend(String name, List<String> files) {
        this.name = name;
        this.files = files;
    }

    @Override
    public final String name() {
        return name;
    }

    @Override
    public final List<String> platforms() {
        return List.of(name);
    }

    @Override
    public final List<String> defaultFiles() {
        return files;
    }

    @Override
    public final boolean recognises(Path file) {
        return TreeFile.recognises(file, name);
    }

    @Override
    public final Optional<Set<String>> settingNames() {
        return Optional.of(Set.of("default-max-batch-size"));
    }

    @Override
    public final @Nullable String unavailableReason() {
        return null;
    }

    @Override
    public final BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        Path file = TreeFile.find(source, config, files);
        ShapExplainer.Origin origin = ShapExplainer.Origin.of(file, name);
        ParsedModel parsed = TreeConfig.chosen(TreeFile.read(file, name, origin.small()), config);
        TreeConfig complete = TreeConfig.complete(parsed, config, context);
        return new TreeModel(parsed, complete, new ShapExplainer(origin, parsed, complete));
    }
}
