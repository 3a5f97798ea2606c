// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.revision;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import org.junit.jupiter.api.Test;

class RevisionSettingsTest {
    @Test
    void whatIsWrittenIsReadAgain() {
        RevisionSettings settings = new RevisionSettings("iris", 3, Duration.ofSeconds(20), 8080, 9000, false, -1);
        assertThat(RevisionSettings.read(settings.toJson())).isEqualTo(settings);
    }

    @Test
    void missingFieldsHaveTheirDefaults() {
        assertThat(RevisionSettings.read("{\"service\":\"iris\",\"httpPort\":8080}"))
                .isEqualTo(new RevisionSettings("iris", 0, Duration.ofSeconds(300), 8080, 0, true, 211));
    }

    @Test
    void whatDoesNotDescribeARevisionIsRefused() {
        assertThatThrownBy(() -> RevisionSettings.read("no")).hasMessageContaining("nereid.io/revision is not JSON");
        assertThatThrownBy(() -> RevisionSettings.read("{}")).hasMessageContaining("has no service");
        assertThatThrownBy(() -> RevisionSettings.read("{\"service\":\"iris\"}"))
                .hasMessageContaining("neither an httpPort nor a grpcPort");
        assertThatThrownBy(() -> RevisionSettings.read("{\"service\":\"iris\",\"httpPort\":70000}"))
                .hasMessageContaining("httpPort 70000 (expected: a whole number from 0 to 65535)");
        assertThatThrownBy(
                        () -> RevisionSettings.read("{\"service\":\"iris\",\"httpPort\":1,\"targetBurstCapacity\":-2}"))
                .hasMessageContaining("targetBurstCapacity -2");
        assertThatThrownBy(() -> RevisionSettings.read("{\"service\":\"iris\",\"httpPort\":1,\"holds\":1}"))
                .hasMessageContaining("holds 1 (expected: true or false)");
    }
}
