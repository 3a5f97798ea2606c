// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.repository.StoredModel.ModelEntry;
import io.nereid.spi.Source.Aspired;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What is remembered of a model between two looks at it. Guarded by the source's lock. */
final class Tracked {
    final String name;
    List<Aspired> emitted = List.of();
    List<Problem> problems = List.of();

    @Nullable Path root;

    @Nullable Path directory;

    /** Fingerprint of what was emitted last, or tried to be. */
    @Nullable String takenUp;

    /** Fingerprint that the latest look saw and that has not settled yet. */
    @Nullable String pending;

    long pendingSince;

    /** Looks in a row that found nothing. */
    int missing;

    boolean serving;

    /** Loaded by request with another configuration or other files than the stored ones, which it is not to follow. */
    boolean overridden;

    /** Where its files lie instead of in a repository. */
    @Nullable Scratch scratch;

    Tracked(String name) {
        this.name = name;
    }

    void at(ModelEntry entry) {
        root = entry.root();
        directory = entry.file() == null ? entry.directory() : null;
    }

    /** Notes that nothing of it is taken up, so that the next look counts as new. */
    void forget() {
        pending = null;
        takenUp = null;
        overridden = false;
    }
}
