// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

/**
 * The annotation of an InferenceService or InferenceGraph that asks for callers whom the cluster's API server knows. Name
 * and meaning are those of Open Data Hub's distribution of KServe. Stateless.
 *
 * <pre>{@code
 * metadata:
 *   annotations: {security.opendatahub.io/enable-auth: "true"}
 * }</pre>
 */
public final class AccessAnnotation {
    /** The annotation. */
    public static final String NAME = "security.opendatahub.io/enable-auth";

    /** What a server without a cluster says to it. */
    public static final String ON_ONE_MACHINE = "the annotation " + NAME
            + " has no effect on one machine: no API server knows the callers; start the server"
            + " with --api-keys or --access-config";

    private AccessAnnotation() {}

    /** Whether the resource asks for such callers: every value but {@code false} does, so that a typing error leaves nothing open. */
    public static boolean isSet(ObjectMeta metadata) {
        String value = metadata.annotation(NAME);
        return value != null && !value.isBlank() && !value.strip().equalsIgnoreCase("false");
    }
}
