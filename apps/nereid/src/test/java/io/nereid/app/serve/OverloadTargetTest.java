// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;

class OverloadTargetTest {
    private static Duration target(String... options) {
        ServeCommand command = new ServeCommand();
        new CommandLine(command).setCaseInsensitiveEnumValuesAllowed(true).parseArgs(options);
        return command.overloadTarget();
    }

    @Test
    void anOverloadIsLimitedToASecondUnlessTheOptionsSayOtherwise() {
        assertThat(target("models")).isEqualTo(Duration.ofSeconds(1));
        assertThat(target("models", "--overload-target", "250ms")).isEqualTo(Duration.ofMillis(250));
        assertThat(target("models", "--overload-target=off")).isZero();
        assertThat(target("models", "--max-queue", "50")).isZero();
        assertThat(target("models", "--max-queue", "50", "--overload-target=2s"))
                .isEqualTo(Duration.ofSeconds(2));
    }

    @Test
    void theOptionsOfOtherServersKeepTheirQueues() {
        assertThat(target("--model-repository", "models")).isZero();
        assertThat(target("--model-store", "models")).isZero();
        assertThat(target("--model_config_file", "models.config")).isZero();
        assertThat(target("--model_base_path", "/models/half_plus_two")).isZero();
        assertThat(target("models", "--compat-ports", "triton")).isZero();
        assertThat(target("models", "--compat-ports", "tfs")).isZero();
        assertThat(target("models", "--compat-ports", "kserve")).isEqualTo(Duration.ofSeconds(1));
        assertThat(target("--model-repository", "models", "--overload-target=1s"))
                .isEqualTo(Duration.ofSeconds(1));
    }
}
