// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.pool;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.kubernetes.pool.PoolObjects;
import io.nereid.control.kubernetes.pool.PoolObjects.Holder;
import io.nereid.control.kubernetes.revision.GatewayObjects;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ClusterKinds;
import io.nereid.control.operator.revision.LoadSource;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * The tables of models as EndpointSlices, which the gateways follow as those of any revision. Calls for one service run
 * one after the other. Thread-safe.
 */
final class EndpointTables implements PoolTables, AutoCloseable {
    private static final int LANES = 8;
    private static final Duration FOLLOWED = Duration.ofSeconds(10);

    /** What a gateway has chosen a pod for before it followed has reached the pod after this time. */
    private static final long UNDERWAY_MILLIS = 500;

    private static final long AGAIN_MILLIS = 1000;

    private final ClusterClient client;
    private final LoadSource load;
    private final List<ScheduledThreadPoolExecutor> lanes = new ArrayList<>();

    EndpointTables(ClusterClient client, LoadSource load) {
        this.client = client;
        this.load = load;
        for (int i = 0; i < LANES; i++) {
            lanes.add(Threads.timer("pool-table-" + i));
        }
    }

    @Override
    public CompletionStage<Void> publish(PooledService service, List<Holder> holders, boolean followed) {
        String key = service.owner.namespace() + "/" + service.name();
        ScheduledThreadPoolExecutor lane = lanes.get(Math.floorMod(key.hashCode(), LANES));
        List<String> revisions = List.copyOf(service.revisions);
        String pool = service.model.pool();
        CompletableFuture<Void> written =
                CompletableFuture.runAsync(() -> write(service, revisions, pool, holders, followed), lane);
        if (!followed) {
            return written;
        }
        CompletableFuture<Void> done = new CompletableFuture<>();
        Object unusedToo = written.whenComplete((unused, failure) -> {
            long pause = failure == null ? UNDERWAY_MILLIS : AGAIN_MILLIS;
            after(lane, pause).execute(() -> {
                if (failure == null) {
                    done.complete(null);
                } else {
                    done.completeExceptionally(failure);
                }
            });
        });
        return done;
    }

    private static Executor after(ScheduledThreadPoolExecutor lane, long millis) {
        return task -> {
            Object unused = lane.schedule(task, millis, TimeUnit.MILLISECONDS);
        };
    }

    private void write(
            PooledService service, List<String> revisions, String pool, List<Holder> holders, boolean followed) {
        String namespace = service.owner.namespace();
        for (String revision : revisions) {
            Object unused = client.apply(
                    ClusterKinds.ENDPOINT_SLICE,
                    PoolObjects.slice(service.owner, service.service, revision, pool, holders));
            if (followed) {
                try {
                    boolean all = load.awaitRoute(
                            namespace,
                            GatewayObjects.SLICE_PREFIX + PoolObjects.sliceName(revision),
                            PoolObjects.table(holders),
                            FOLLOWED);
                    if (!all) {
                        throw ServingException.of(
                                ErrorCode.UNAVAILABLE,
                                "not all gateways have followed within " + FOLLOWED.toSeconds() + " s",
                                "the log of a gateway says why");
                    }
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                    throw ServingException.of(ErrorCode.CANCELLED, "the operator ends");
                }
            }
        }
    }

    @Override
    public void close() {
        lanes.forEach(ScheduledThreadPoolExecutor::shutdownNow);
    }
}
