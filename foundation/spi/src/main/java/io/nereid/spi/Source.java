// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import java.util.List;

/**
 * Decides which versions should be served (TensorFlow Serving's aspired versions). A source always passes the complete
 * list of versions of a model: versions that the list omits are unloaded, and an empty list unloads the model. Passing
 * the same list again has no effect. A version whose loader has another {@linkplain Loader#fingerprint fingerprint}
 * than before is loaded beside the old one, which then unloads. A version that cannot be loaded is passed with the
 * error, so that the model's status shows it.
 *
 * <p>A source that serves the models of a registry and follows its changes:
 *
 * <pre>{@code
 * final class RegistrySource implements Source {
 *     private final Registry registry;                       // the application's own registry of models
 *
 *     public void start(Target target) {
 *         registry.onChange(model -> emit(target, model));   // later; any thread may emit
 *         registry.models().forEach(model -> emit(target, model));
 *     }
 *
 *     private void emit(Target target, String model) {
 *         target.aspire(model, registry.versions(model).map(v -> AspiredVersion.of(registry.loader(model, v))).toList());
 *     }
 *
 *     public void close() {
 *         registry.onChange(model -> {});
 *     }
 * }
 * }</pre>
 */
public interface Source extends AutoCloseable {
    /**
     * Starts to emit aspired versions to {@code target}. The first list of every model that is known at the start must
     * be emitted before this method returns.
     */
    void start(Target target);

    /** Stops emitting. */
    @Override
    void close();

    /** Receives aspired versions. Implementations are thread-safe and return at once. */
    @FunctionalInterface
    interface Target {
        /**
         * Replaces the aspired versions of a model.
         *
         * @param versions every version of the model that should be served; empty to unload the model
         */
        void aspire(String model, List<AspiredVersion> versions);
    }
}
