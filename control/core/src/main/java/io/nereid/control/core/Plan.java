// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What to do for one service: the whole of it; what a plan leaves out ends. Immutable.
 *
 * @param workloads what runs
 * @param route how it is reached; null when nothing answers, or while the service is stopped
 * @param revisions what is to be kept, oldest first
 * @param status the resource's new status
 * @param events what people should hear of now
 * @param requeueAfter when to plan again although nothing changed; null for never
 */
public record Plan(
        List<Workload> workloads,
        @Nullable Route route,
        List<Revision> revisions,
        ObjectNode status,
        List<Event> events,
        @Nullable Duration requeueAfter) {
    /**
     * Something that happened to a service.
     *
     * @param type {@code Normal} or {@code Warning}
     * @param reason one word
     * @param message for people
     */
    public record Event(String type, String reason, String message) {}
}
