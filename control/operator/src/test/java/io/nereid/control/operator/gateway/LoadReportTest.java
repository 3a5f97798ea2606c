// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.gateway;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.control.core.ObservedState.Traffic;
import java.util.List;
import org.junit.jupiter.api.Test;

class LoadReportTest {
    @Test
    void aLineIsReadAsItWasWrittenAndGatewaysAddUp() {
        RevisionLoad idle = new RevisionLoad("default", "iris-predictor-00001", 0, 0, 0, 1, 1);
        RevisionLoad busy =
                new RevisionLoad("default", "iris-predictor-00001", 2, 3.5, 120, 0, 3, new Traffic(7000, 2, 31.5));
        LoadReport report = new LoadReport(false, List.of(idle, busy));
        assertThat(report.toJson()).doesNotContain("\n");
        assertThat(LoadReport.read(report.toJson())).isEqualTo(report);
        assertThat(LoadReport.read(report.toJson()).routes()).isNull();
        LoadReport routes = new LoadReport(
                true, List.of(), List.of(new FollowedRoute("default", "iris", FollowedRoute.digest("{}"))));
        assertThat(LoadReport.read(routes.toJson())).isEqualTo(routes);
        RevisionLoad other =
                new RevisionLoad("default", "iris-predictor-00001", 1, 1, 30, 0, 1, new Traffic(1800, 5, 12));
        assertThat(busy.plus(other))
                .isEqualTo(new RevisionLoad(
                        "default", "iris-predictor-00001", 2, 4.5, 150, 0, 4, new Traffic(8800, 7, 31.5)));
    }
}
