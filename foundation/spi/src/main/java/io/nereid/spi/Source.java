// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import io.nereid.base.ServingException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Says which versions should be served. It hands over whole lists: what a list leaves out is no longer wanted, and an empty
 * list ends a model. Handing over the same list twice is harmless; a version whose loader has another
 * {@linkplain Loader#fingerprint fingerprint} than before is loaded anew beside the old one. A version that cannot be had
 * is handed over with the reason, so that it shows in the model's status.
 *
 * <p>A source of one's own, which serves what a registry names and follows it:
 *
 * <pre>{@code
 * final class RegistrySource implements Source {
 *     private final Registry registry;                       // whatever knows the models
 *
 *     public void start(Target target) {
 *         registry.onChange(model -> emit(target, model));   // later; any thread may emit
 *         registry.models().forEach(model -> emit(target, model));
 *     }
 *
 *     private void emit(Target target, String model) {
 *         target.aspire(model, registry.versions(model).map(v -> Aspired.of(registry.loader(model, v))).toList());
 *     }
 *
 *     public void close() {
 *         registry.onChange(model -> {});
 *     }
 * }
 * }</pre>
 */
public interface Source extends AutoCloseable {
    /** Starts emitting to {@code target}; the first emission for every model known at the start happens before it returns. */
    void start(Target target);

    /** Stops emitting. */
    @Override
    void close();

    /** Receives aspired versions. Implementations are thread-safe and return at once. */
    @FunctionalInterface
    interface Target {
        /** Every version of {@code model} that should be served, replacing what was said of it before. */
        void aspire(String model, List<Aspired> versions);
    }

    /**
     * One wanted version, or the reason why it cannot be had.
     *
     * @param id the version
     * @param loader makes it servable; null when {@code error} is set
     * @param error why not; null when {@code loader} is set
     */
    record Aspired(
            ServableId id,
            @Nullable Loader loader,
            @Nullable ServingException error) {
        /** A version that can be loaded. */
        public static Aspired of(Loader loader) {
            return new Aspired(loader.id(), loader, null);
        }

        /** A version that cannot. */
        public static Aspired failed(ServableId id, ServingException error) {
            return new Aspired(id, null, error);
        }
    }
}
