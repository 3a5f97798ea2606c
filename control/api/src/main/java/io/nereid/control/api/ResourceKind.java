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
 * @param alternates other versions under which the same resources are served; they are stored in {@code version}
 */
public record ResourceKind(
        String group,
        String version,
        String kind,
        String plural,
        String singular,
        List<String> shortNames,
        boolean namespaced,
        List<Column> columns,
        List<String> alternates) {

    /** A kind of one version. */
    public ResourceKind(
            String group,
            String version,
            String kind,
            String plural,
            String singular,
            List<String> shortNames,
            boolean namespaced,
            List<Column> columns) {
        this(group, version, kind, plural, singular, shortNames, namespaced, columns, List.of());
    }

    /** Whether the resources are served under a version. */
    public boolean serves(String other) {
        return version.equals(other) || alternates.contains(other);
    }

    /**
     * The kind as it is served under a version.
     *
     * @throws IllegalArgumentException for a version that is not served
     */
    public ResourceKind inVersion(String other) {
        if (version.equals(other)) {
            return this;
        }
        if (!alternates.contains(other)) {
            throw new IllegalArgumentException(kind + " is not served as " + other);
        }
        return new ResourceKind(group, other, kind, plural, singular, shortNames, namespaced, columns, List.of());
    }

    /** Group and version as in a resource's {@code apiVersion} field. */
    public String apiVersion() {
        return group.isEmpty() ? version : group + "/" + version;
    }

    /** Whether the kind has the status subresource, which is updated under {@code /status}. */
    public boolean hasStatus() {
        return group.equals(ResourceKinds.SERVING)
                && (kind.equals("InferenceService")
                        || kind.equals("InferenceGraph")
                        || kind.equals("TrainedModel")
                        || kind.startsWith("LLMInferenceService")
                        || (kind.startsWith("LocalModel") && !kind.equals("LocalModelNodeGroup"))
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
