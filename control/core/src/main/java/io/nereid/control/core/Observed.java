// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What is known of a service as it runs. Immutable.
 *
 * @param workloads by revision
 * @param revisions the ones of the last plan, oldest first
 * @param status the status that was written last, or an empty object
 */
public record Observed(Map<String, State> workloads, List<Revision> revisions, JsonNode status) {
    /** Nothing runs yet. */
    public static Observed nothing(JsonNode status) {
        return new Observed(Map.of(), List.of(), status);
    }

    /** How far a workload has come. */
    public enum Phase {
        /** Nothing has begun. */
        PENDING,
        /** Its files are fetched, or it starts. */
        LOADING,
        /** It answers. */
        READY,
        /** It has scaled to zero and comes back with the next request. */
        STANDBY,
        /** It cannot run as it is. */
        FAILED
    }

    /**
     * One workload.
     *
     * @param phase how far it has come
     * @param replicas how many answer
     * @param wanted how many should
     * @param failure why not, when it failed, or failed since it was last ready
     * @param traffic what its requests were like lately
     */
    public record State(
            Phase phase, int replicas, int wanted, @Nullable Failure failure, Traffic traffic) {}

    /**
     * A failure.
     *
     * @param reason one of KServe's: {@code ModelLoadFailed}, {@code RuntimeUnhealthy}, …
     * @param message for people
     * @param exitCode of a process; null when there is none
     */
    public record Failure(
            String reason,
            String message,
            Instant time,
            @Nullable Integer exitCode) {}

    /**
     * Requests of the last minute.
     *
     * @param requests how many
     * @param errors how many of them the server failed
     * @param p99Millis the time that 99 of 100 took at most
     */
    public record Traffic(long requests, long errors, double p99Millis) {
        /** None. */
        public static final Traffic NONE = new Traffic(0, 0, 0);
    }
}
