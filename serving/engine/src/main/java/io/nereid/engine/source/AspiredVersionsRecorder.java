// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.source;

import io.nereid.lifecycle.Manager;
import io.nereid.spi.ServableId;
import io.nereid.spi.Source;
import io.nereid.spi.Source.Aspired;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** What is wanted of every model, as the manager heard it last. Thread-safe by its lock, which is held while it is told. */
final class AspiredVersionsRecorder implements Source.Target {
    private final Manager manager;
    private final Map<String, List<Aspired>> wanted = new TreeMap<>();

    AspiredVersionsRecorder(Manager manager) {
        this.manager = manager;
    }

    @Override
    public synchronized void aspire(String model, List<Aspired> versions) {
        manager.aspire(model, versions);
        if (versions.isEmpty()) {
            wanted.remove(model);
        } else {
            wanted.put(model, versions);
        }
    }

    /** The names of all models of which anything is wanted. */
    synchronized List<String> models() {
        return List.copyOf(wanted.keySet());
    }

    /** The versions that are wanted of a model. */
    synchronized List<ServableId> versions(String model) {
        return wanted.getOrDefault(model, List.of()).stream().map(Aspired::id).toList();
    }
}
