// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.base.Experimental;
import io.nereid.base.ServingException;
import io.nereid.repository.RepositorySource;
import io.nereid.repository.layout.StoredModel;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What a repository holds of a model, as it was read from the disk. Immutable.
 *
 * @param place the model's directory, or its file
 * @param versions ascending
 * @param problems of the model as a whole, as texts with file and line
 * @param configuration the file with its configuration; null for a model without one
 * @param written the fields of that file, as Map, List, String, Long, Double and Boolean
 */
@Experimental
public record ModelFiles(
        Path place,
        List<Version> versions,
        List<String> problems,
        @Nullable Path configuration,
        Map<String, Object> written) {
    /**
     * A version on the disk.
     *
     * @param selected whether the version policy selects it
     * @param error why it cannot be served; null if it can
     */
    public record Version(
            long version, boolean selected, @Nullable ServingException error) {}

    /** Reads a model; null when it is not in the repository. Blocks. */
    static @Nullable ModelFiles read(RepositorySource repository, String name) {
        StoredModel model = repository.stored(name);
        if (model == null) {
            return null;
        }
        List<StoredModel.Version> selected = model.aspired();
        return new ModelFiles(
                model.entry().place(),
                model.versions().stream()
                        .map(v -> new Version(v.version(), selected.contains(v), v.error()))
                        .toList(),
                model.problems().stream().map(Object::toString).toList(),
                repository.configuration(model),
                model.config().document());
    }
}
