// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The observed state of a service, an input of the planner. Immutable.
 *
 * @param workloads the states of the workloads by revision
 * @param revisions the revisions of the last plan, oldest first
 * @param status the last written status, or an empty object
 * @param gatewayProblem why no gateway takes the requests of services, for users; empty when one does
 */
public record ObservedState(
        Map<String, WorkloadState> workloads, List<Revision> revisions, JsonNode status, String gatewayProblem) {
    /** A state with a gateway that takes requests. */
    public ObservedState(Map<String, WorkloadState> workloads, List<Revision> revisions, JsonNode status) {
        this(workloads, revisions, status, "");
    }

    /** The state of a service without workloads and revisions. */
    public static ObservedState nothing(JsonNode status) {
        return new ObservedState(Map.of(), List.of(), status);
    }

    /** The phase of a workload. */
    public enum Phase {
        /** Not started. */
        PENDING,
        /** Its files are being downloaded, or it is starting. */
        LOADING,
        /** It serves requests. */
        READY,
        /** It is scaled to zero; the next request starts it again. */
        STANDBY,
        /** It failed to load, to start or to stay up. */
        FAILED
    }

    /**
     * A failure.
     *
     * @param reason one of KServe's reasons: {@code ModelLoadFailed}, {@code RuntimeUnhealthy}, …
     * @param message a description for users
     * @param exitCode the exit code of the process; null when not applicable
     */
    public record Failure(
            String reason,
            String message,
            Instant time,
            @Nullable Integer exitCode) {}

    /**
     * Statistics of the requests of the last minute.
     *
     * @param requests the number of requests
     * @param errors the number of requests that failed with a server error
     * @param p99Millis the 99th percentile of the latency
     */
    public record Traffic(long requests, long errors, double p99Millis) {
        /** No requests. */
        public static final Traffic NONE = new Traffic(0, 0, 0);
    }
}
