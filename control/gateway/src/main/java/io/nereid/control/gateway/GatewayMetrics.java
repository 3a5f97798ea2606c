// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import java.util.List;
import java.util.Locale;
import java.util.function.ToLongFunction;

/** Writes the counters of the activators in Prometheus' text format. Stateless. */
final class GatewayMetrics {
    private static final String[] CODES = {"client_gone", "1xx", "2xx", "3xx", "4xx", "5xx"};

    private GatewayMetrics() {}

    static String write(List<RevisionActivator> activators) {
        StringBuilder b = new StringBuilder();
        head(b, "nereid_gateway_requests_total", "counter", "Requests that have ended, by the class of their status.");
        for (RevisionActivator activator : activators) {
            for (int i = 0; i < CODES.length; i++) {
                long count = activator.ended(i);
                if (count > 0 || i == 2) {
                    line(b, "nereid_gateway_requests_total", activator, ",code=\"" + CODES[i] + "\"", count);
                }
            }
        }
        family(
                b,
                activators,
                "nereid_gateway_in_flight",
                "gauge",
                "Requests in flight, including those that wait.",
                g -> g.activeNow());
        family(
                b,
                activators,
                "nereid_gateway_waiting",
                "gauge",
                "Requests that are held or queued.",
                g -> g.waitingNow());
        family(
                b,
                activators,
                "nereid_gateway_held_total",
                "counter",
                "Requests that arrived while there was no replica.",
                g -> g.held.sum());
        family(
                b,
                activators,
                "nereid_gateway_refused_total",
                "counter",
                "Requests that the gateway rejected.",
                g -> g.refused.sum());
        family(
                b,
                activators,
                "nereid_gateway_retried_total",
                "counter",
                "Requests that were retried at another process.",
                g -> g.retried.sum());
        family(
                b,
                activators,
                "nereid_gateway_mirrored_total",
                "counter",
                "Mirrored requests that were sent.",
                g -> g.mirrored.sum());
        family(
                b,
                activators,
                "nereid_gateway_mirror_dropped_total",
                "counter",
                "Mirrored requests that were not sent.",
                g -> g.unmirrored.sum());
        return b.toString();
    }

    private static void family(
            StringBuilder b,
            List<RevisionActivator> activators,
            String name,
            String type,
            String help,
            ToLongFunction<RevisionActivator> value) {
        head(b, name, type, help);
        for (RevisionActivator activator : activators) {
            line(b, name, activator, "", value.applyAsLong(activator));
        }
    }

    private static void head(StringBuilder b, String name, String type, String help) {
        b.append(String.format(Locale.ROOT, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type));
    }

    private static void line(StringBuilder b, String name, RevisionActivator activator, String more, long value) {
        b.append(name)
                .append("{namespace=\"")
                .append(activator.namespace())
                .append("\",service=\"")
                .append(activator.settings().service())
                .append("\",revision=\"")
                .append(activator.revision())
                .append('"')
                .append(more)
                .append("} ")
                .append(value)
                .append('\n');
    }
}
