// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.source;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.lifecycle.ServableManager;
import io.nereid.spi.AspiredVersion;
import io.nereid.spi.ServableId;
import io.nereid.spi.Source;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Records the aspired versions of every model and forwards them to the lifecycle manager. Thread-safe by its lock,
 * which is held while the manager is called, so that record and manager see the same order.
 */
final class AspiredVersionsRecorder implements Source.Target {
    private final ServableManager manager;

    @GuardedBy("this") private final Map<String, List<AspiredVersion>> aspired = new TreeMap<>();

    AspiredVersionsRecorder(ServableManager manager) {
        this.manager = manager;
    }

    @Override
    public synchronized void aspire(String model, List<AspiredVersion> versions) {
        manager.aspire(model, versions);
        if (versions.isEmpty()) {
            aspired.remove(model);
        } else {
            aspired.put(model, versions);
        }
    }

    /** The names of all models with aspired versions. */
    synchronized List<String> models() {
        return List.copyOf(aspired.keySet());
    }

    /** The aspired versions of a model. */
    synchronized List<ServableId> versions(String model) {
        return aspired.getOrDefault(model, List.of()).stream()
                .map(AspiredVersion::id)
                .toList();
    }
}
