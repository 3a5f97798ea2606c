// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spring.embedded;

import io.nereid.embedded.Nereid;
import io.nereid.spi.ServableState;
import io.nereid.spi.management.ModelStatus;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * What the health indicators show of embedded models; Spring Boot 3 and 4 have types of their own for it. Immutable.
 *
 * @param up whether all models serve
 * @param models the states of the versions by model and version, such as {@code AVAILABLE}, or {@code FAILED: …} with a reason;
 *     a model without versions has an empty map
 */
public record ModelHealth(boolean up, Map<String, Map<String, String>> models) {
    /** Looks at the models. A model serves when one of its versions is available. */
    public static ModelHealth of(Nereid nereid) {
        boolean up = nereid.isReady();
        Map<String, Map<String, String>> models = new LinkedHashMap<>();
        for (ModelStatus model : nereid.models()) {
            Map<String, String> versions = new LinkedHashMap<>();
            boolean serves = false;
            for (ServableState version : model.versions()) {
                serves |= version.phase() == ServableState.Phase.AVAILABLE;
                String reason = version.phase() == ServableState.Phase.FAILED && version.reason() != null
                        ? ": " + version.reason()
                        : "";
                versions.put(
                        Long.toString(version.id().version()), version.phase().name() + reason);
            }
            up &= serves;
            models.put(model.model(), versions);
        }
        return new ModelHealth(up, models);
    }
}
