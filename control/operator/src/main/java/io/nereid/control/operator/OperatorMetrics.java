// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.plane.ServiceReconciler;
import io.nereid.observe.metrics.LabelSet;
import io.nereid.observe.metrics.MetricType;
import io.nereid.observe.metrics.MetricsFormat;
import io.nereid.observe.metrics.MetricsWriter;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Counts what the operator does, and writes it as a page of metrics. Thread-safe. */
final class OperatorMetrics {
    private final LongAdder succeeded = new LongAdder();
    private final LongAdder failed = new LongAdder();
    private final LongAdder nanos = new LongAdder();
    private final ClusterClient client;
    private final BooleanSupplier leader;
    private final Clock clock;

    OperatorMetrics(ClusterClient client, BooleanSupplier leader, Clock clock) {
        this.clock = clock;
        this.client = client;
        this.leader = leader;
    }

    /** Writes the page. */
    String page(MetricsFormat format) {
        return MetricsWriter.page(format, page -> {
            page.family("nereid_operator_leader", MetricType.GAUGE, "1 when this replica is the leader");
            page.sample(LabelSet.of(Map.of()), leader.getAsBoolean() ? 1 : 0);
            page.family(
                    "nereid_operator_reconciliations_total",
                    MetricType.COUNTER,
                    "Reconciliations of services and graphs, by result");
            page.sample(LabelSet.of("result", "success"), succeeded.sum());
            page.sample(LabelSet.of("result", "error"), failed.sum());
            page.family(
                    "nereid_operator_reconciliation_seconds_total",
                    MetricType.COUNTER,
                    "Time spent in reconciliations, calls to the API server included");
            page.sample(LabelSet.of(Map.of()), nanos.sum() / 1e9);
            page.family(
                    "nereid_operator_api_requests_total",
                    MetricType.COUNTER,
                    "Requests to the API server but for lists and watches, by verb and kind");
            new TreeMap<>(client.requests()).forEach((request, count) -> {
                int space = request.indexOf(' ');
                page.sample(
                        LabelSet.of(new TreeMap<>(
                                Map.of("verb", request.substring(0, space), "kind", request.substring(space + 1)))),
                        count);
            });
        });
    }

    /** Returns a reconciler whose calls are counted. */
    ServiceReconciler counting(ServiceReconciler reconciler) {
        return new ServiceReconciler() {
            @Override
            public void onChange(ChangeListener listener) {
                reconciler.onChange(listener);
            }

            @Override
            public Outcome reconcile(ObjectNode service, RuntimeCatalog catalog, Instant now) {
                return counted(() -> reconciler.reconcile(service, catalog, now));
            }

            @Override
            public Outcome reconcileGraph(
                    ObjectNode graph,
                    Function<String, @Nullable InferenceService> services,
                    RuntimeCatalog catalog,
                    Instant now) {
                return counted(() -> reconciler.reconcileGraph(graph, services, catalog, now));
            }

            @Override
            public boolean remove(boolean graph, String namespace, String name) {
                return reconciler.remove(graph, namespace, name);
            }

            @Override
            public void forget(boolean graph, String namespace, String name) {
                reconciler.forget(graph, namespace, name);
            }

            @Override
            public boolean needsFinalizer() {
                return reconciler.needsFinalizer();
            }

            @Override
            public Set<ResourceStore.Type> retriedAfter() {
                return reconciler.retriedAfter();
            }

            @Override
            public Duration pace() {
                return reconciler.pace();
            }

            @Override
            public void retry(String namespace) {
                reconciler.retry(namespace);
            }
        };
    }

    private ServiceReconciler.Outcome counted(java.util.function.Supplier<ServiceReconciler.Outcome> work) {
        long start = clock.nanos();
        boolean done = false;
        try {
            ServiceReconciler.Outcome outcome = work.get();
            done = true;
            return outcome;
        } finally {
            nanos.add(clock.nanos() - start);
            (done ? succeeded : failed).increment();
        }
    }
}
