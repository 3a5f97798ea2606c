// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.component;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.Container;
import io.nereid.control.api.InferenceService.ComponentExtensionSpec;
import io.nereid.control.api.PodSpec;
import io.nereid.control.core.Workload.Artifact;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.runtime.RuntimeSelection;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What one component of a service is, before it is decided where it runs: the runtime chosen and merged, the whole pod,
 * metadata, artifacts, and the scaling as written. The forms of one machine and of Kubernetes are both made of it, so
 * that no decision is made twice. Nothing of the pod is lost. Immutable as long as the JSON trees are not modified.
 *
 * @param component the component
 * @param name the name of its workload, such as {@code iris-predictor}
 * @param where the path of the component in the service, for messages
 * @param extension the fields that every component has, scaling among them
 * @param written the component as in the specification
 * @param selection the selection of the runtime; null for custom containers
 * @param problem the reason why it cannot run; null when it can
 * @param pod the fields of the pod, runtime and service merged, templates filled in; without containers for a component
 *     that the server itself runs
 * @param workers the pod of the workers of a multi-node runtime; null for none
 * @param artifacts the files to download and where containers see them
 * @param arguments arguments of the first container that it gets unless it sets them itself
 * @param runtimeLabels labels that the runtime gives its pods
 * @param derivedLabels labels that follow from the model's format; templates may refer to them
 * @param runtimeAnnotations annotations that the runtime gives its pods
 */
public record ComponentPlan(
        Component component,
        String name,
        String where,
        ComponentExtensionSpec extension,
        PodSpec written,
        @Nullable RuntimeSelection selection,
        @Nullable Problem problem,
        PodSpec pod,
        @Nullable Workers workers,
        List<Artifact> artifacts,
        Map<String, String> arguments,
        Map<String, String> runtimeLabels,
        Map<String, String> derivedLabels,
        Map<String, String> runtimeAnnotations) {
    /** A problem with the specification: the reason as one word, and a message for users. */
    public record Problem(String reason, String message) {}

    /**
     * The workers of a multi-node runtime.
     *
     * @param pod their pod, runtime and service merged
     * @param pipelineParallelSize the number of stages of the model's pipeline
     * @param tensorParallelSize the number of parts of each tensor
     * @param labels labels that the runtime gives the workers' pods
     * @param annotations annotations that the runtime gives the workers' pods
     */
    public record Workers(
            PodSpec pod,
            int pipelineParallelSize,
            int tensorParallelSize,
            Map<String, String> labels,
            Map<String, String> annotations) {}

    /** The container of the pod with this name; null for none. */
    public @Nullable Container container(String containerName) {
        return pod.container(containerName);
    }

    /** The component as in the specification, with all its fields. */
    public ObjectNode tree() {
        return written.tree();
    }
}
