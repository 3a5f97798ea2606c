// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import io.nereid.base.ServingException;
import java.nio.file.Path;

/**
 * Says what a model file is and how it can be served, for {@code nereid convert}: a provider that {@link
 * java.util.ServiceLoader} finds. Files are read as data; nothing in them runs. Thread-safe: has no state.
 *
 * <pre>{@code
 * for (ModelConverter converter : ServiceLoader.load(ModelConverter.class)) {
 *     if (converter.recognises(file)) {
 *         Conversion conversion = converter.convert(file);
 *     }
 * }
 * }</pre>
 */
public interface ModelConverter {
    /** Whether the file or directory is of a kind that this converter knows, by its name and first bytes. */
    boolean recognises(Path file);

    /**
     * Describes the model, and makes the files that serve it where it cannot be served as it is.
     *
     * @throws ServingException INVALID_ARGUMENT for a file that cannot be read
     */
    Conversion convert(Path file);
}
