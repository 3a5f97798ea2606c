// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import io.nereid.observe.metrics.LabelSet;
import io.nereid.observe.metrics.MetricType;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.recording.RequestLogger.LogCount;
import java.util.List;

/** Writes the request log counters under TensorFlow Serving's names. Stateless. */
final class TfServingMetricsWriter {
    private TfServingMetricsWriter() {}

    static void write(MetricsWriter page, List<LogCount> counts) {
        if (counts.isEmpty()) {
            return;
        }
        page.family(":tensorflow:serving:request_log_count", MetricType.COUNTER, "");
        for (LogCount count : counts) {
            page.sample(
                    LabelSet.of("model_name", count.model())
                            .with("status_code", count.code().toString()),
                    count.count());
        }
    }
}
