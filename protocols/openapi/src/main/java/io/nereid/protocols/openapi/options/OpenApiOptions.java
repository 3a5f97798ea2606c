// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.openapi.options;

import io.nereid.spi.ModelMetadata;
import java.util.function.Predicate;

/**
 * The settings of the OpenAPI documents. Immutable.
 *
 * <pre>{@code
 * OpenApiOptions options = OpenApiOptions.of("1.4.0").withAccess(access);
 * }</pre>
 *
 * @param version the version of the server
 * @param access how callers identify themselves
 * @param explainable whether a model can be explained, where a protocol has routes for explanations
 */
public record OpenApiOptions(String version, AccessDescription access, Predicate<ModelMetadata> explainable) {
    /** The settings of a server without credentials that does not explain models. */
    public static OpenApiOptions of(String version) {
        return new OpenApiOptions(version, AccessDescription.NONE, model -> false);
    }

    /** These settings with a description of access. */
    public OpenApiOptions withAccess(AccessDescription description) {
        return new OpenApiOptions(version, description, explainable);
    }

    /** These settings with the models that can be explained. */
    public OpenApiOptions withExplainable(Predicate<ModelMetadata> models) {
        return new OpenApiOptions(version, access, models);
    }
}
