// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The plan of one service: its complete desired state. Workloads that are not in the plan are stopped. Immutable.
 *
 * @param workloads the workloads to run
 * @param route the route; null when no revision is ready, or while the service is stopped
 * @param revisions the revisions to keep, oldest first
 * @param status the resource's new status
 * @param events the events to record now
 * @param requeueAfter the time after which to plan again even without a change; null for never
 */
public record Plan(
        List<Workload> workloads,
        @Nullable Route route,
        List<Revision> revisions,
        ObjectNode status,
        List<Event> events,
        @Nullable Duration requeueAfter) {
    /**
     * An event about a service, as in Kubernetes.
     *
     * @param type {@code Normal} or {@code Warning}
     * @param reason the reason as one word
     * @param message a description for users
     */
    public record Event(String type, String reason, String message) {}
}
