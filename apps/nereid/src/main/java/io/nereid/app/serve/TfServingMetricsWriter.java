// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import io.nereid.recording.RequestLogger.LogCount;
import java.util.List;
import java.util.Locale;

/** Writes the request log counters under TensorFlow Serving's names, in Prometheus' text format. Stateless. */
final class TfServingMetricsWriter {
    private static final String LOGGED = ":tensorflow:serving:request_log_count";

    private TfServingMetricsWriter() {}

    static String write(List<LogCount> counts) {
        if (counts.isEmpty()) {
            return "";
        }
        StringBuilder page = new StringBuilder("# TYPE " + LOGGED + " counter\n");
        for (LogCount count : counts) {
            page.append(String.format(
                    Locale.ROOT,
                    "%s{model_name=\"%s\",status_code=\"%s\"} %d%n",
                    LOGGED,
                    count.model().replace("\\", "\\\\").replace("\"", "\\\""),
                    count.code(),
                    count.count()));
        }
        return page.toString();
    }
}
