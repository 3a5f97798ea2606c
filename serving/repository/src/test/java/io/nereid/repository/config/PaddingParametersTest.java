// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.repository.problem.Problem;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.parameters.PaddingPolicy;
import io.nereid.tensor.DataType;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The parameters of padding: what is read, and what is reported with the name of the input. */
class PaddingParametersTest {
    private static final String TENSORS = """
            input [ { name: "ids" data_type: TYPE_INT64 dims: [ -1 ] },
                    { name: "small" data_type: TYPE_UINT8 dims: [ -1, 2 ] },
                    { name: "flag" data_type: TYPE_BOOL dims: [ -1 ] },
                    { name: "text" data_type: TYPE_STRING dims: [ -1 ] },
                    { name: "square" data_type: TYPE_FP32 dims: [ -1, -1 ] },
                    { name: "fixed" data_type: TYPE_FP32 dims: [ 4 ] },
                    { name: "ragged" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true } ]
            output [ { name: "tokens" data_type: TYPE_FP32 dims: [ -1, 8 ] },
                     { name: "pooled" data_type: TYPE_FP32 dims: [ 8 ] } ]
            """;

    @TempDir
    Path directory;

    private final ProblemCollector problems = new ProblemCollector();

    private ModelConfig read(String text) {
        return ModelConfigReader.read(directory.resolve("config.pbtxt"), text, directory, "m", true, problems)
                .config();
    }

    private static String parameter(String key, String value) {
        return "parameters { key: \"" + key + "\" value { string_value: \"" + value + "\" } }\n";
    }

    @Test
    void namesValuesOutputsAndLengthsAreRead() {
        ModelConfig config = read("max_batch_size: 8 dynamic_batching { }\n" + TENSORS
                + parameter("batching_padding", " ids = -1,small=255, flag=true")
                + parameter("batching_padding_buckets", "16, 32")
                + parameter("batching_padding_order", "arrival"));
        assertThat(problems.list()).isEmpty();
        PaddingPolicy policy = PaddingPolicy.of(config);
        assertThat(policy)
                .isEqualTo(new PaddingPolicy(
                        Map.of("ids", "-1", "small", "255", "flag", "true"),
                        List.of("tokens"),
                        List.of(16, 32),
                        false,
                        true));
        assertThat(List.of(policy.padded(1), policy.padded(16), policy.padded(17), policy.padded(33)))
                .containsExactly(16, 16, 32, 33);
        PaddingPolicy powers = new PaddingPolicy(Map.of("ids", "0"), List.of(), List.of(), true, false);
        assertThat(List.of(powers.padded(0), powers.padded(1), powers.padded(5), powers.padded(8)))
                .containsExactly(0, 1, 8, 8);
    }

    @Test
    void aModelWithoutTheParametersHasNoPolicy() {
        assertThat(PaddingPolicy.of(read("max_batch_size: 8 dynamic_batching { }\n" + TENSORS)))
                .isNull();
    }

    @Test
    void elementsHaveTheBytesOfTheirType() {
        assertThat(PaddingPolicy.element(DataType.INT16, "-2")).containsExactly(0xfe, 0xff);
        assertThat(PaddingPolicy.element(DataType.UINT64, "18446744073709551615"))
                .containsOnly(0xff)
                .hasSize(8);
        assertThat(PaddingPolicy.element(DataType.FP16, "1.5")).containsExactly(0x00, 0x3e);
        assertThat(PaddingPolicy.element(DataType.BF16, "1.5")).containsExactly(0xc0, 0x3f);
        assertThat(PaddingPolicy.element(DataType.FP32, "-Infinity")).containsExactly(0, 0, 0x80, 0xff);
        assertThat(PaddingPolicy.element(DataType.FP64, "1")).containsExactly(0, 0, 0, 0, 0, 0, 0xf0, 0x3f);
    }

    @Test
    void aNumberThatItsTypeCannotHoldIsReported() {
        assertThatThrownBy(() -> PaddingPolicy.element(DataType.FP16, "70000"))
                .hasMessage(
                        "'70000' for type FP16 (expected: a number that fits the type, NaN, Infinity or -Infinity)");
        assertThatThrownBy(() -> PaddingPolicy.element(DataType.FP64, "1e999"))
                .hasMessageContaining("a number that fits");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "idz=0 | input 'idz' (expected: one of [ids, small, flag, text, square, fixed, ragged])",
                "ids=x | input 'ids': 'x' for type INT64 (expected: an integer from -9223372036854775808 to",
                "small=256 | input 'small': '256' for type UINT8 (expected: an integer from 0 to 255)",
                "flag=2 | input 'flag': '2' for type BOOL (expected: true or false, or 1 or 0)",
                "text=a | input 'text': 'a' for type BYTES (expected: an input of a type of fixed size)",
                "square=0 | input 'square', which has 2 variable dimensions in [-1,-1] (expected: exactly one",
                "fixed=0 | input 'fixed', which has 0 variable dimensions in [4] (expected: exactly one",
                "ragged=0 | input 'ragged', which has allow_ragged_batch (expected: inputs without that)",
                "ids | 'ids' (expected: NAME=VALUE, separated by commas)",
                "ids=0,ids=1 | input 'ids' twice (expected: each input once)",
            })
    void whatDoesNotFitTheInputIsReported(String value, String message) {
        read("max_batch_size: 8 dynamic_batching { }\n" + TENSORS + parameter("batching_padding", value));
        assertThat(problems.list()).singleElement().satisfies(p -> {
            assertThat(p.severity()).isEqualTo(Problem.Severity.ERROR);
            assertThat(p.message()).startsWith("parameter batching_padding of model 'm': " + message);
            assertThat(p.remedy()).isNotNull();
            assertThat(p.line()).isEqualTo(11);
        });
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "outputs | pooled | output 'pooled', which has the fixed shape [8] (expected: outputs of a type",
                "outputs | none | output 'none' (expected: one of [tokens, pooled])",
                "buckets | 16,8 | '16,8' (expected: none, powers, or at most 1000 ascending lengths of at least 1)",
                "buckets | 0 | '0' (expected: none, powers",
                "buckets | some | 'some' (expected: none, powers",
                "order | size | 'size' (expected: length or arrival)",
            })
    void otherParametersAreChecked(String name, String value, String message) {
        String key = "batching_padding_" + name;
        read("max_batch_size: 8 dynamic_batching { }\n" + TENSORS + parameter("batching_padding", "ids=0")
                + parameter(key, value));
        assertThat(problems.list())
                .singleElement()
                .satisfies(p -> assertThat(p.message()).startsWith("parameter " + key + " of model 'm': " + message));
    }

    @Test
    void whatCannotPadIsReported() {
        read("max_batch_size: 8 dynamic_batching { }\n" + TENSORS + parameter("batching_padding_order", "length"));
        read("max_batch_size: 0\n" + TENSORS.replace(" allow_ragged_batch: true", "")
                + parameter("batching_padding", "ids=0"));
        read("max_batch_size: 8 sequence_batching { }\n" + TENSORS + parameter("batching_padding", "ids=0"));
        assertThat(problems.list())
                .extracting(Problem::message)
                .containsExactly(
                        "parameter batching_padding_order of model 'm': without parameter batching_padding (expected: both)",
                        "parameter batching_padding of model 'm': max_batch_size is 0 (expected: at least 1)",
                        "parameter batching_padding of model 'm': it has sequence_batching (expected: dynamic_batching)");
    }

    @Test
    void aCompleteConfigurationNeedsABatcherAndAnIncompleteOneDoesNot() {
        ModelConfig config = read("max_batch_size: 8\n" + TENSORS + parameter("batching_padding", "ids=0"));
        assertThat(problems.list()).isEmpty();
        assertThatThrownBy(() -> ModelConfigDocument.check(config, directory, GpuInventory.NONE))
                .hasMessage(
                        "parameter batching_padding of model 'm': requests are not batched (expected: dynamic_batching)");
        ModelConfigDocument.check(
                config.toBuilder().batching(DynamicBatching.EAGER).build(), directory, GpuInventory.NONE);
        read(parameter("batching_padding", "anything=0"));
        assertThat(problems.list()).isEmpty();
    }
}
