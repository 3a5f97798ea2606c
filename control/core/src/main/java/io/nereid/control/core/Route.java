// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import io.nereid.control.core.Workload.Component;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How clients reach one service. Immutable.
 *
 * @param namespace the service's namespace
 * @param name the service's name
 * @param kind what the service is: {@code InferenceService} or {@code InferenceGraph}
 * @param doors names under which it is found
 * @param components its parts: the predictor always, transformer and explainer where it has them
 * @param graph the graph to run when it is an InferenceGraph; empty otherwise
 */
public record Route(
        String namespace,
        String name,
        String kind,
        List<Door> doors,
        Map<Component, Backend> components,
        String graph) {
    /**
     * One name. A request finds the service by its host, or by the beginning of its path.
     *
     * @param host lower case, without a port; empty for any host
     * @param pathPrefix such as {@code /serving/default/iris}; empty for none
     * @param component the part that it leads to; null for the service's front: the transformer where there is one, else the
     *     predictor, and the explainer for {@code :explain}
     * @param tag the tag of the target that it leads to; null for all by their shares
     */
    public record Door(
            String host,
            String pathPrefix,
            @Nullable Component component,
            @Nullable String tag) {}

    /**
     * The revisions that share one component's requests.
     *
     * @param targets with shares that add up to 100; never empty
     * @param mirrors revisions that get copies whose answers are thrown away; the percentage is of all requests
     * @param stickyHeader requests with the same value of this header go to the same revision; null for none
     */
    public record Backend(
            List<Target> targets,
            List<Target> mirrors,
            @Nullable String stickyHeader) {}

    /** One revision's share of the requests. */
    public record Target(
            String revision, int percent, @Nullable String tag) {}
}
