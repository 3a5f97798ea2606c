// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.recording.Recorder.LogCount;
import java.util.List;
import java.util.Locale;

/** Counters of written requests under TensorFlow Serving's names, in Prometheus' text format. Has no state. */
final class TfsFigures {
    private static final String LOGGED = ":tensorflow:serving:request_log_count";

    private TfsFigures() {}

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
