// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.layout;

import io.nereid.repository.layout.StoredModel.ModelEntry;
import io.nereid.repository.problem.Problem;
import io.nereid.spi.AspiredVersion;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The state of a model between two polls. Guarded by the source's lock. */
public final class TrackedModel {
    public final String name;
    public List<AspiredVersion> emitted = List.of();
    public List<Problem> problems = List.of();

    public @Nullable Path root;

    public @Nullable Path directory;

    /** Fingerprint of the last accepted state, whether or not it could be served. */
    public @Nullable String accepted;

    /** Fingerprint of the latest poll if it has not settled yet. */
    public @Nullable String pending;

    public long pendingSince;

    /** Polls in a row that found nothing. */
    public int missing;

    public boolean serving;

    /** Whether it was loaded with an override, so that changes of the stored model are ignored. */
    public boolean overridden;

    /** The overridden files, or null for the stored ones. */
    public @Nullable OverrideDirectory scratch;

    public TrackedModel(String name) {
        this.name = name;
    }

    public void at(ModelEntry entry) {
        root = entry.root();
        directory = entry.file() == null ? entry.directory() : null;
    }

    /** Forgets the accepted state, so that the next poll accepts the model as new. */
    public void forget() {
        pending = null;
        accepted = null;
        overridden = false;
    }
}
