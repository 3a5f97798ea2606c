// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.repository.RepositorySource.Mode;
import java.util.HashSet;
import java.util.Set;

/** Which models are wanted, and on whose account. Guarded by the source's lock. */
final class DesiredModels {
    private final boolean explicit;
    private final Set<String> asked = new HashSet<>();
    private final Set<String> needed = new HashSet<>();
    private final Set<String> unloaded = new HashSet<>();

    DesiredModels(Mode mode) {
        this.explicit = mode == Mode.EXPLICIT;
    }

    boolean wants(String name) {
        return explicit ? asked.contains(name) || needed.contains(name) : !unloaded.contains(name);
    }

    /** Somebody asked for a model by its name. */
    void ask(String name) {
        unloaded.remove(name);
        needed.remove(name);
        asked.add(name);
    }

    /** An ensemble is made of a model. */
    void need(String name) {
        if (!wants(name)) {
            unloaded.remove(name);
            needed.add(name);
        }
    }

    void drop(String name) {
        asked.remove(name);
        needed.remove(name);
        unloaded.add(name);
    }

    /** Whether a model is wanted only because an ensemble is made of it. */
    boolean onlyNeeded(String name) {
        return needed.contains(name);
    }
}
