// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.observe.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;

class MetricsFormatTest {
    @ParameterizedTest
    @ValueSource(
            strings = {
                "application/openmetrics-text",
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
                "Application/OpenMetrics-Text;version=\"1.0.0\"",
                // Prometheus 2.42
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
                        + "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                // Prometheus 3
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
                        + "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;q=0.3,"
                        + "text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
                "text/plain;q=0.5, application/openmetrics-text;q=0.6",
                "application/openmetrics-text;q=0.001",
                "application/openmetrics-text, text/plain"
            })
    void openMetricsIsChosen(String accept) {
        assertThat(MetricsFormat.accepted(accept)).isEqualTo(MetricsFormat.OPENMETRICS);
    }

    @ParameterizedTest
    @NullSource
    @ValueSource(
            strings = {
                "",
                "*/*",
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
                "text/plain;version=0.0.4",
                "application/openmetrics-text;version=0.0.1",
                "application/openmetrics-text;version=2.0.0,*/*;q=0.1",
                "application/openmetrics-text;q=0",
                "application/openmetrics-text;q=0.5,text/plain",
                "application/openmetrics-text;q=0.5,*/*;q=0.6",
                "text/*,application/openmetrics-text",
                "application/json",
                ";,;;q=,=",
            })
    void theTextFormatIsTheDefault(@Nullable String accept) {
        assertThat(MetricsFormat.accepted(accept)).isEqualTo(MetricsFormat.TEXT);
    }

    @ParameterizedTest
    @ValueSource(strings = {"application/openmetrics-text;q=x", "application/openmetrics-text;q"})
    void aWeightThatIsNotANumberCountsAsOne(String accept) {
        assertThat(MetricsFormat.accepted(accept + ",text/plain;q=0.9")).isEqualTo(MetricsFormat.OPENMETRICS);
    }
}
