// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator;

import static io.nereid.control.operator.OperatorCluster.tree;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.time.Instant;
import org.junit.jupiter.api.Test;

class StatusPacingTest {
    private static final Instant START = Instant.parse("2026-01-01T00:00:00Z");

    private final StatusPacing pacing = new StatusPacing();
    private JsonNode stored = MissingNode.getInstance();

    private static ObjectNode status(int generation, String ready, String model, String detail) {
        return tree("{'observedGeneration':" + generation + ",'modelStatus':{'states':{'activeModelState':'" + model
                + "'}},'conditions':[{'type':'Ready','status':'" + ready + "','message':'" + detail + "'}]}");
    }

    /** Offers a status at a time; returns the milliseconds until it may be written. */
    private long at(long millis, ObjectNode status) {
        Duration wait = pacing.wait("uid", stored, status, START.plusMillis(millis));
        if (wait.isZero()) {
            stored = status;
        }
        return wait.toMillis();
    }

    @Test
    void aServiceThatStartsWritesTwoStatuses() {
        assertThat(at(0, status(1, "False", "", "pending"))).isZero();
        assertThat(at(100, status(1, "False", "", "created"))).isEqualTo(14_900);
        assertThat(at(300, status(1, "True", "", "available")))
                .as("its pod is not known yet")
                .isEqualTo(200);
        assertThat(at(400, status(1, "True", "Loaded", "available"))).isZero();
        assertThat(at(500, status(1, "True", "Loaded", "progressed"))).isEqualTo(14_900);
        assertThat(at(15_400, status(1, "True", "Loaded", "progressed"))).isZero();
    }

    @Test
    void whatClientsWaitForIsWrittenAtOnce() {
        assertThat(at(0, status(1, "True", "Loaded", ""))).isZero();
        assertThat(at(100, status(1, "False", "Loaded", "lost")))
                .as("readiness is lost")
                .isZero();
        assertThat(at(200, status(2, "False", "", "new")))
                .as("a new generation")
                .isZero();
        ObjectNode failed = status(2, "False", "", "new");
        failed.withObject("/modelStatus/lastFailureInfo").put("message", "no such file");
        assertThat(at(300, failed)).as("a failure").isZero();
    }

    @Test
    void aServiceWithoutAModelIsReadyAfterTwoSeconds() {
        assertThat(at(0, status(1, "False", "", ""))).isZero();
        assertThat(at(100, status(1, "True", "", ""))).isEqualTo(200);
        assertThat(at(2_100, status(1, "True", "", ""))).isZero();
    }
}
