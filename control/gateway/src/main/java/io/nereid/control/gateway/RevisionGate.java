// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.control.core.Observed.Traffic;
import io.nereid.control.core.Workload;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * One revision's way in: counts its requests, limits how many run at once, and holds them while nothing can answer.
 *
 * <p>Requests are held while there are no replicas ({@link #capacity} of 0, or no child processes): the first one wakes the
 * revision. With replicas and a limit, those beyond it wait in line; a {@linkplain #serving direct} revision has a short line,
 * another one as long a line as it may hold.
 *
 * <p>Thread-safe; no method waits.
 */
public final class RevisionGate {
    /**
     * Limits of a revision. Immutable.
     *
     * @param service the service's name, for metrics and headers
     * @param containerConcurrency most requests at once in one replica; 0 for no limit
     * @param queued most requests that wait in line, for each replica; 0 for ten times {@code containerConcurrency}
     * @param timeout most time for one request, waiting included; zero for no limit
     * @param held most requests that are held while there are no replicas
     * @param mirrored most copies of requests under way
     */
    public record Settings(
            String service, int containerConcurrency, int queued, Duration timeout, int held, int mirrored) {
        /** No limit on running requests, five minutes, 10,000 held, 100 mirrored. */
        public static Settings of(String service) {
            return new Settings(service, 0, 0, Duration.ofMinutes(5), 10_000, 100);
        }

        /** As a workload says. */
        public static Settings of(Workload workload) {
            Settings s = of(workload.service());
            return new Settings(
                    s.service, workload.containerConcurrency(), s.queued, workload.timeout(), s.held, s.mirrored);
        }
    }

    /**
     * What has gone on since the last look.
     *
     * @param concurrency mean number of requests under way, those that wait included
     * @param requestsPerSecond requests that came
     * @param waiting requests that are held or in line now
     * @param active requests under way now, those that wait included
     */
    public record Load(double concurrency, double requestsPerSecond, int waiting, int active) {}

    private final String namespace;
    private final String revision;

    RevisionGate(String namespace, String revision) {
        this.namespace = namespace;
        this.revision = revision;
    }

    /** The namespace. */
    public String namespace() {
        return namespace;
    }

    /** The revision's name. */
    public String revision() {
        return revision;
    }

    /** Sends requests there from now on. */
    public void destination(Destination destination) {}

    /** How many replicas answer; with 0 requests are held. */
    public void capacity(int replicas) {}

    /** Whether requests beyond the limit wait in the revision's own short line, or in the long one of those that are held. */
    public void serving(boolean direct) {}

    /** Refuses requests, those that wait too, with 503 and this text; null to take them again. */
    public void refuse(@Nullable String why) {}

    /** Has somebody listen to requests and answers; null for nobody. */
    public void tap(@Nullable PayloadTap tap) {}

    /**
     * What has gone on since the last call. For one thread at a time.
     *
     * @param now of the gateway's clock, in nanoseconds
     */
    public Load sample(long now) {
        return new Load(0, 0, 0, 0);
    }

    /** What the requests of the last minute were like. */
    public Traffic traffic(long now) {
        return Traffic.NONE;
    }

    /** Takes no request any more; completes when the last one has ended, on the thread that ended it. */
    public CompletionStage<Void> close() {
        return CompletableFuture.completedStage(null);
    }
}
