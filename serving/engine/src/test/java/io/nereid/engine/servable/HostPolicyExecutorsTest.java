// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.servable;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.InstanceGroup.Kind;
import io.nereid.spi.config.ModelConfig;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

class HostPolicyExecutorsTest {
    private final DeviceExecutor common = new DeviceExecutor("test", 1);

    @AfterEach
    void close() {
        common.close();
    }

    @Test
    @EnabledOnOs(OS.LINUX)
    void modelsRunInThePoolOfTheirPolicyAndOthersInTheCommonPool() {
        Map<String, Map<String, String>> policies =
                Map.of("gold", Map.of("cpu-cores", "0"), "model", Map.of("cpu-cores", "0"));
        try (HostPolicyExecutors pools = new HostPolicyExecutors(common, policies, 4, Clock.system())) {
            DeviceExecutor gold = pools.of(config(group("gold", Kind.CPU), group("gold", Kind.CPU)));
            assertThat(gold).isNotSameAs(common);
            assertThat(gold.threads()).as("one for each processor").isEqualTo(1);
            assertThat(pools.of(config(group("", Kind.MODEL))))
                    .isNotSameAs(common)
                    .isNotSameAs(gold);
            assertThat(pools.of(config(group("", Kind.CPU)))).isSameAs(common);
            assertThat(pools.of(config(group("unknown", Kind.CPU)))).isSameAs(common);
            assertThat(pools.of(config())).isSameAs(common);
            assertThatThrownBy(() -> pools.of(config(group("gold", Kind.CPU), group("", Kind.CPU))))
                    .isInstanceOfSatisfying(ServingException.class, e -> {
                        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                        assertThat(e)
                                .hasMessageStartingWith("model 'm' has instance groups of different host policies");
                    });
        }
    }

    @Test
    void aPolicyThatIsNotUnderstoodStopsTheStart() {
        Map<String, Map<String, String>> policies = Map.of("gold", Map.of("cores", "0"));
        assertThatThrownBy(() -> new HostPolicyExecutors(common, policies, 4, Clock.system()))
                .hasMessageStartingWith("host policy 'gold,cores=0' is not understood");
    }

    private static ModelConfig config(InstanceGroup... groups) {
        return ModelConfig.builder("m").instanceGroups(List.of(groups)).build();
    }

    private static InstanceGroup group(String policy, Kind kind) {
        return new InstanceGroup("m", kind, 1, List.of(), false, policy, List.of(), 0);
    }
}
