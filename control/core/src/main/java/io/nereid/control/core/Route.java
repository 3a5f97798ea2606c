// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import io.nereid.control.core.Workload.Component;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The route of one service or graph: its hosts and paths, and the revisions that share the traffic of each component.
 * Immutable.
 *
 * @param namespace the service's namespace
 * @param name the service's name
 * @param kind {@code InferenceService} or {@code InferenceGraph}
 * @param rules the hosts and path prefixes that lead to it
 * @param components the backends of its components, as far as they are ready
 * @param graph the graph as JSON for an InferenceGraph; empty otherwise
 */
public record Route(
        String namespace,
        String name,
        String kind,
        List<IngressRule> rules,
        Map<Component, Backend> components,
        String graph) {
    /**
     * One ingress rule: a request matches by its host, or by the prefix of its path.
     *
     * @param host in lower case, without a port; empty for any host
     * @param pathPrefix such as {@code /serving/default/iris}; empty for none
     * @param component the component that receives the requests; null for the service as a whole: the transformer if
     *     there is one, else the predictor, and the explainer for {@code :explain}
     * @param tag the tag of the target that receives the requests; null to split the traffic among all targets
     */
    public record IngressRule(
            String host,
            String pathPrefix,
            @Nullable Component component,
            @Nullable String tag) {}

    /**
     * The revisions that share the traffic of one component.
     *
     * @param targets targets whose percentages add up to 100; never empty
     * @param mirrors revisions that receive copies of requests, whose responses are discarded; the percentage is of all
     *     requests
     * @param stickyHeader requests with the same value of this header go to the same revision; null for none
     */
    public record Backend(
            List<Target> targets,
            List<Target> mirrors,
            @Nullable String stickyHeader) {}

    /** A revision with its percentage of the traffic. */
    public record Target(
            String revision, int percent, @Nullable String tag) {}
}
