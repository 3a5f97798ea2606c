// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.repository.RepositorySource.Mode;
import java.util.HashSet;
import java.util.Set;

/**
 * The models to serve: by request, or as a member of a requested ensemble. In the other modes than EXPLICIT, all models
 * that were not unloaded by request. Guarded by the source's lock.
 */
final class DesiredModels {
    private final boolean explicit;
    private final Set<String> requested = new HashSet<>();
    private final Set<String> asMember = new HashSet<>();
    private final Set<String> unloaded = new HashSet<>();

    DesiredModels(Mode mode) {
        this.explicit = mode == Mode.EXPLICIT;
    }

    boolean contains(String name) {
        return explicit ? requested.contains(name) || asMember.contains(name) : !unloaded.contains(name);
    }

    /** Records a request for a model. */
    void request(String name) {
        unloaded.remove(name);
        asMember.remove(name);
        requested.add(name);
    }

    /** Records that a requested ensemble has the model as a member. */
    void requestAsMember(String name) {
        if (!contains(name)) {
            unloaded.remove(name);
            asMember.add(name);
        }
    }

    void unload(String name) {
        requested.remove(name);
        asMember.remove(name);
        unloaded.add(name);
    }

    /** Whether a model is served only as a member of an ensemble. */
    boolean onlyAsMember(String name) {
        return asMember.contains(name);
    }
}
