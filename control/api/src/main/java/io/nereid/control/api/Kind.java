// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import java.util.List;

/**
 * A kind of resources. Immutable.
 *
 * @param group such as {@code serving.kserve.io}; empty for Kubernetes' core
 * @param version such as {@code v1beta1}
 * @param kind such as {@code InferenceService}
 * @param plural as in paths
 * @param singular lower case
 * @param shortNames as {@code kubectl} takes them
 * @param namespaced whether its resources belong to namespaces
 * @param columns what is printed of one, after its name
 */
public record Kind(
        String group,
        String version,
        String kind,
        String plural,
        String singular,
        List<String> shortNames,
        boolean namespaced,
        List<Column> columns) {

    /** Group and version as a resource names them. */
    public String apiVersion() {
        return group.isEmpty() ? version : group + "/" + version;
    }

    /** Whether the status is changed by itself, under {@code /status}. */
    public boolean hasStatus() {
        return group.equals(Kinds.SERVING)
                && (kind.equals("InferenceService")
                        || kind.equals("InferenceGraph")
                        || kind.endsWith("ServingRuntime"));
    }

    /** The list's kind. */
    public String listKind() {
        return kind + "List";
    }

    /**
     * A printed column.
     *
     * @param name the heading
     * @param type {@code string}, {@code integer}, {@code boolean} or {@code date}
     * @param description for people
     * @param priority 0 for always, 1 for wide listings
     * @param path a JSON path as in Kubernetes' printer columns, such as {@code .status.url}
     */
    public record Column(String name, String type, String description, int priority, String path) {}
}
