// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.schema;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.repository.schema.ConfigSchema.Support;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.Test;

class ConfigSchemaTest {
    private static final Set<String> SCALARS =
            Set.of("string", "bool", "int32", "int64", "uint32", "uint64", "float", "double");

    @Test
    void everyTypeOfTheTableIsDefined() {
        ConfigSchema schema = ConfigSchema.MODEL_CONFIG;
        for (String message : schema.messageNames()) {
            Map<String, ConfigSchema.Field> fields = Objects.requireNonNull(schema.fields(message));
            for (ConfigSchema.Field f : fields.values()) {
                assertThat(SCALARS.contains(f.type())
                                || schema.fields(f.type()) != null
                                || schema.enumeration(f.type()) != null)
                        .as(message + "." + f.name() + " is " + f.type())
                        .isTrue();
            }
        }
    }

    @Test
    void enumerationsHaveTheirNumbers() {
        List<String> types = Objects.requireNonNull(ConfigSchema.MODEL_CONFIG.enumeration("DataType"));
        assertThat(types.get(0)).isEqualTo("TYPE_INVALID");
        assertThat(types.get(11)).isEqualTo("TYPE_FP32");
        assertThat(types.get(14)).isEqualTo("TYPE_BF16");
    }

    @Test
    void theConfigurationHasAllFieldsOfTriton() {
        assertThat(Objects.requireNonNull(ConfigSchema.MODEL_CONFIG.fields("ModelConfig")))
                .hasSize(25);
    }

    @Test
    void everyFieldThatIsNotSupportedHasAReason() {
        List<String> reasons = new ArrayList<>();
        forEachField((message, f) -> {
            if (f.support() == Support.ONLY_DEFAULT || f.support() == Support.REJECTED) {
                reasons.add(message + "." + f.name());
            }
        });
        assertThat(reasons).containsExactlyInAnyOrderElementsOf(UnsupportedFields.fields());
    }

    @Test
    void onlyFieldsThatSteerOtherHardwareAreWithoutEffect() {
        List<String> fields = new ArrayList<>();
        forEachField((message, f) -> {
            if (f.support() == Support.WITHOUT_EFFECT) {
                fields.add(message + "." + f.name());
            }
        });
        assertThat(fields)
                .containsExactlyInAnyOrder(
                        "ModelInput.format",
                        "ModelOptimizationPolicy.priority",
                        "ModelOptimizationPolicy.gather_kernel_buffer_threshold",
                        "ModelOptimizationPolicy.eager_batching",
                        "PinnedMemoryBuffer.enable");
    }

    private static void forEachField(BiConsumer<String, ConfigSchema.Field> action) {
        for (String message : ConfigSchema.MODEL_CONFIG.messageNames()) {
            Objects.requireNonNull(ConfigSchema.MODEL_CONFIG.fields(message))
                    .values()
                    .forEach(f -> action.accept(message, f));
        }
    }
}
