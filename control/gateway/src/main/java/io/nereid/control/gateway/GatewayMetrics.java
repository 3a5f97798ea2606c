// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import static io.nereid.observe.metrics.MetricType.COUNTER;
import static io.nereid.observe.metrics.MetricType.GAUGE;

import io.nereid.control.gateway.activator.RevisionActivator;
import io.nereid.observe.metrics.LabelSet;
import io.nereid.observe.metrics.MetricType;
import io.nereid.observe.metrics.MetricsWriter;
import java.util.List;
import java.util.function.ToLongFunction;

/** Writes the counters of the activators. Confined to one thread. */
final class GatewayMetrics {
    private static final String[] CODES = {"client_gone", "1xx", "2xx", "3xx", "4xx", "5xx"};

    private final MetricsWriter page;
    private final List<RevisionActivator> activators;

    GatewayMetrics(MetricsWriter page, List<RevisionActivator> activators) {
        this.page = page;
        this.activators = activators;
    }

    void write() {
        page.family(
                "nereid_gateway_requests_total", COUNTER, "Requests that have ended, by the class of their status.");
        for (RevisionActivator activator : activators) {
            for (int i = 0; i < CODES.length; i++) {
                long count = activator.ended(i);
                if (count > 0 || i == 2) {
                    page.sample(labels(activator).with("code", CODES[i]), count);
                }
            }
        }
        family(
                "nereid_gateway_in_flight",
                GAUGE,
                "Requests in flight, including those that wait.",
                RevisionActivator::activeNow);
        family("nereid_gateway_waiting", GAUGE, "Requests that are held or queued.", RevisionActivator::waitingNow);
        family(
                "nereid_gateway_held_total",
                COUNTER,
                "Requests that arrived while there was no replica.",
                g -> g.held.sum());
        family("nereid_gateway_refused_total", COUNTER, "Requests that the gateway rejected.", g -> g.rejected.sum());
        family(
                "nereid_gateway_retried_total",
                COUNTER,
                "Requests that were retried at another process.",
                g -> g.retried.sum());
        family("nereid_gateway_mirrored_total", COUNTER, "Mirrored requests that were sent.", g -> g.mirrored.sum());
        family(
                "nereid_gateway_mirror_dropped_total",
                COUNTER,
                "Mirrored requests that were not sent.",
                g -> g.unmirrored.sum());
    }

    private void family(String name, MetricType type, String help, ToLongFunction<RevisionActivator> value) {
        page.family(name, type, help);
        for (RevisionActivator activator : activators) {
            page.sample(labels(activator), value.applyAsLong(activator));
        }
    }

    private static LabelSet labels(RevisionActivator activator) {
        return LabelSet.of("namespace", activator.namespace())
                .with("service", activator.settings().service())
                .with("revision", activator.revision());
    }
}
