// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import java.util.List;

/**
 * A kind of resources, with what discovery reports about it. Immutable.
 *
 * @param group such as {@code serving.kserve.io}; empty for Kubernetes' core group
 * @param version such as {@code v1beta1}
 * @param kind such as {@code InferenceService}
 * @param plural the plural in paths, such as {@code inferenceservices}
 * @param singular the singular in lower case
 * @param shortNames the short names that {@code kubectl} accepts
 * @param namespaced whether its resources belong to namespaces
 * @param columns the printer columns after the name
 */
public record ResourceKind(
        String group,
        String version,
        String kind,
        String plural,
        String singular,
        List<String> shortNames,
        boolean namespaced,
        List<Column> columns) {

    /** Group and version as in a resource's {@code apiVersion} field. */
    public String apiVersion() {
        return group.isEmpty() ? version : group + "/" + version;
    }

    /** Whether the kind has the status subresource, which is updated under {@code /status}. */
    public boolean hasStatus() {
        return group.equals(ResourceKinds.SERVING)
                && (kind.equals("InferenceService")
                        || kind.equals("InferenceGraph")
                        || kind.endsWith("ServingRuntime"));
    }

    /** The kind of a list of such resources, such as {@code InferenceServiceList}. */
    public String listKind() {
        return kind + "List";
    }

    /**
     * A printer column, as in Kubernetes' {@code additionalPrinterColumns}.
     *
     * @param name the heading
     * @param type {@code string}, {@code integer}, {@code boolean} or {@code date}
     * @param description a description of the value
     * @param priority 0 for always, 1 for wide listings only
     * @param path a JSONPath such as {@code .status.url}
     */
    public record Column(String name, String type, String description, int priority, String path) {}
}
