// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.layout;

import io.nereid.repository.layout.StoredModel.ModelEntry;
import io.nereid.repository.problem.Problem;
import io.nereid.spi.Source.Aspired;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What is remembered of a model between two looks at it. Guarded by the source's lock. */
public final class TrackedModel {
    public final String name;
    public List<Aspired> emitted = List.of();
    public List<Problem> problems = List.of();

    public @Nullable Path root;

    public @Nullable Path directory;

    /** Fingerprint of what was emitted last, or tried to be. */
    public @Nullable String takenUp;

    /** Fingerprint that the latest look saw and that has not settled yet. */
    public @Nullable String pending;

    public long pendingSince;

    /** Looks in a row that found nothing. */
    public int missing;

    public boolean serving;

    /** Loaded by request with another configuration or other files than the stored ones, which it is not to follow. */
    public boolean overridden;

    /** Where its files lie instead of in a repository. */
    public @Nullable OverrideDirectory scratch;

    public TrackedModel(String name) {
        this.name = name;
    }

    public void at(ModelEntry entry) {
        root = entry.root();
        directory = entry.file() == null ? entry.directory() : null;
    }

    /** Notes that nothing of it is taken up, so that the next look counts as new. */
    public void forget() {
        pending = null;
        takenUp = null;
        overridden = false;
    }
}
