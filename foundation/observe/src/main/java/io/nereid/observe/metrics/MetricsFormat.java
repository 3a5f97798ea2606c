// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.observe.metrics;

import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** The exposition formats, and the choice between them by a request's {@code Accept}. */
public enum MetricsFormat {
    /** Prometheus' text format 0.0.4. */
    TEXT("text/plain; version=0.0.4; charset=utf-8"),
    /** OpenMetrics 1.0.0. */
    OPENMETRICS("application/openmetrics-text; version=1.0.0; charset=utf-8");

    private final String contentType;

    MetricsFormat(String contentType) {
        this.contentType = contentType;
    }

    /** The value of the response's {@code Content-Type}. */
    public String contentType() {
        return contentType;
    }

    /**
     * Chooses the format that a client prefers: the one with the highest {@code q}, and of equal ones the first. Media
     * types and versions that the server does not have are passed over; the text format when nothing is left, as
     * Prometheus' own client libraries do.
     *
     * @param accept the value of {@code Accept}, or null without one
     */
    public static MetricsFormat accepted(@Nullable String accept) {
        MetricsFormat best = TEXT;
        double quality = 0;
        for (String range :
                (accept == null ? "" : accept).toLowerCase(Locale.ROOT).split(",")) {
            String[] parts = range.split(";", -1);
            String version = "";
            double q = 1;
            for (int i = 1; i < parts.length; i++) {
                String parameter = parts[i].strip();
                if (parameter.startsWith("version=")) {
                    version = parameter.substring("version=".length()).strip().replace("\"", "");
                } else if (parameter.startsWith("q=")) {
                    q = quality(parameter.substring("q=".length()).strip());
                }
            }
            MetricsFormat format = of(parts[0].strip(), version);
            if (format != null && q > quality) {
                best = format;
                quality = q;
            }
        }
        return best;
    }

    private static @Nullable MetricsFormat of(String mediaType, String version) {
        return switch (mediaType) {
            case "application/openmetrics-text" -> version.isEmpty() || version.equals("1.0.0") ? OPENMETRICS : null;
            case "text/plain" -> version.isEmpty() || version.equals("0.0.4") ? TEXT : null;
            case "text/*", "*/*" -> TEXT;
            default -> null;
        };
    }

    private static double quality(String text) {
        try {
            return Double.parseDouble(text);
        } catch (NumberFormatException e) {
            return 1;
        }
    }
}
