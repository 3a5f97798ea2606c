// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.leader;

import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderCallbacks;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElectionConfigBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElector;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import io.nereid.base.Threads;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Takes part in the election of a leader by a Lease, with the periods of Kubernetes' own controllers: a lease of 15 s,
 * renewed every 2 s, given up after 10 s without success. A leader that lost its lease must stop acting at once, for
 * another replica may act already; the callback is expected to end the process. Thread-safe.
 *
 * <pre>{@code
 * try (var election = new LeaderElection(client, "nereid", "nereid-operator", podName, this::lead, this::lost)) {
 *     election.start();
 * }
 * }</pre>
 */
public final class LeaderElection implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(LeaderElection.class);
    private static final Duration LEASE = Duration.ofSeconds(15);
    private static final Duration RENEW_DEADLINE = Duration.ofSeconds(10);
    private static final Duration RETRY = Duration.ofSeconds(2);

    private final LeaderElector elector;
    private final ThreadPoolExecutor threads = Threads.pool("nereid-leader", 2);
    private final AtomicBoolean closed = new AtomicBoolean();
    private volatile boolean leading;
    private volatile CompletableFuture<?> running = CompletableFuture.completedFuture(null);

    /**
     * Creates an election without taking part yet.
     *
     * @param client a client for the lease alone, with short time limits: a call to an API server that is away must end
     *     before the lease does; closed by the caller
     * @param identity the name of this replica, different from those of the others
     * @param lead called once when this replica becomes the leader, on a thread of its own; may block
     * @param lost called once when this replica was the leader and is not any more, unless it is closed
     */
    public LeaderElection(
            KubernetesClient client, String namespace, String name, String identity, Runnable lead, Runnable lost) {
        LeaderCallbacks callbacks = new LeaderCallbacks(
                () -> {
                    leading = true;
                    LOG.info("this replica ({}) is the leader now", identity);
                    threads.execute(lead);
                },
                () -> {
                    boolean was = leading;
                    leading = false;
                    if (was && !closed.get()) {
                        LOG.error("this replica ({}) is not the leader any more", identity);
                        lost.run();
                    }
                },
                leader -> LOG.info("the leader is {}", leader));
        this.elector = new LeaderElector(
                client,
                new LeaderElectionConfigBuilder()
                        .withName(name)
                        .withLock(new LeaseLock(namespace, name, identity))
                        .withLeaseDuration(LEASE)
                        .withRenewDeadline(RENEW_DEADLINE)
                        .withRetryPeriod(RETRY)
                        .withReleaseOnCancel(true)
                        .withLeaderCallbacks(callbacks)
                        .build(),
                threads);
    }

    /** Starts to take part. Does not block. */
    public void start() {
        running = elector.start();
    }

    public boolean isLeader() {
        return leading;
    }

    /** Stops taking part, and releases the lease so that another replica can act at once. */
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            running.cancel(true);
            leading = false;
            threads.shutdown();
        }
    }
}
