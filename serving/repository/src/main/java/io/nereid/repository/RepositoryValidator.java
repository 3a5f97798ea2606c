// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.backend.Backend;
import java.nio.file.Path;
import java.util.List;

/** Draft of the signatures. */
public final class RepositoryValidator {
    /** A validator that knows these backends. */
    public RepositoryValidator(List<Backend> backends) {}

    /** Every problem of everything under a root: a repository, a model's directory, or a model file. */
    public List<Problem> validate(Path root) {
        return List.of();
    }

    /** As {@link #validate(Path)}, and lets the backends load every version that seems right. */
    public List<Problem> validateDeep(Path root, io.nereid.backend.BackendContext context) {
        return List.of();
    }
}
