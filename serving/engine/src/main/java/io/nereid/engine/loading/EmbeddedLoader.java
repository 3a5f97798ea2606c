// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.loading;

import io.nereid.engine.servable.ServableFactory;
import io.nereid.spi.AspiredVersion;
import io.nereid.spi.Loader;
import io.nereid.spi.Servable;
import io.nereid.spi.ServableId;
import io.nereid.spi.Source;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Wraps a loader from an embedding application's source, so that its versions get the validation and the statistics of
 * this engine. Called by one thread at a time.
 */
public final class EmbeddedLoader implements Loader {
    private final Loader loader;
    private final ServableFactory servables;
    private @Nullable EmbeddedServable servable;
    private long loadNanos;

    private EmbeddedLoader(Loader loader, ServableFactory servables) {
        this.loader = loader;
        this.servables = servables;
    }

    /** Returns a target that wraps every loader before it forwards the aspired versions. */
    public static Source.Target target(Source.Target target, ServableFactory servables) {
        return (model, versions) -> target.aspire(
                model, versions.stream().map(v -> wrapped(v, servables)).toList());
    }

    private static AspiredVersion wrapped(AspiredVersion version, ServableFactory servables) {
        Loader loader = version.loader();
        return loader == null ? version : AspiredVersion.of(new EmbeddedLoader(loader, servables));
    }

    @Override
    public ServableId id() {
        return loader.id();
    }

    @Override
    public String fingerprint() {
        return loader.fingerprint();
    }

    @Override
    public String backend() {
        return loader.backend();
    }

    @Override
    public long estimateBytes() {
        return loader.estimateBytes();
    }

    @Override
    public List<String> dependencies() {
        return loader.dependencies();
    }

    @Override
    public boolean updateInPlace(Loader next) {
        return next instanceof EmbeddedLoader other && loader.updateInPlace(other.loader);
    }

    @Override
    public Loader newLoader() {
        return new EmbeddedLoader(loader.newLoader(), servables);
    }

    @Override
    public Servable load() {
        long from = servables.clock().nanos();
        Servable loaded = loader.load();
        EmbeddedServable made = new EmbeddedServable(loaded, servables);
        servable = made;
        loadNanos = servables.clock().nanos() - from;
        return made;
    }

    @Override
    public void warm() {
        long from = servables.clock().nanos();
        loader.warm();
        EmbeddedServable loaded = servable;
        if (loaded != null) {
            loaded.loadNanos(loadNanos + servables.clock().nanos() - from);
            servables.register(loaded, fingerprint());
        }
    }

    @Override
    public void unload() {
        EmbeddedServable loaded = servable;
        servable = null;
        if (loaded != null) {
            servables.unregister(loaded);
        }
        loader.unload();
    }
}
