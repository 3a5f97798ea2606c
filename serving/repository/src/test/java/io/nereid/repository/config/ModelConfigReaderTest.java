// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.config;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.repository.Fakes;
import io.nereid.repository.problem.Problem;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.QueuePolicy;
import io.nereid.spi.config.TensorSpec;
import io.nereid.spi.config.VersionPolicy;
import io.nereid.spi.config.WarmupInput;
import io.nereid.spi.config.WarmupSample;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ModelConfigReaderTest {
    @TempDir
    Path model;

    private final ProblemCollector problems = new ProblemCollector();

    private ModelConfig read(String text) {
        return ModelConfigReader.read(model.resolve("config.pbtxt"), text, model, "m", true, problems)
                .config();
    }

    private ModelConfig readWell(String text) {
        ModelConfig config = read(text);
        assertThat(problems.list()).isEmpty();
        return config;
    }

    private List<String> complaints(String text) {
        read(text);
        return problems.list().stream()
                .map(p -> p.line() + ":" + p.column() + " " + p.message())
                .toList();
    }

    private Problem only(String text) {
        read(text);
        assertThat(problems.list()).hasSize(1);
        return problems.list().get(0);
    }

    @Test
    void everyHonouredFieldReachesTheModelsConfiguration() {
        Fakes.write(model.resolve("labels.txt"), "cat\ndog \r\n\n");
        Fakes.write(model.resolve("warmup/row"), "x");
        ModelConfig c = readWell("""
            # a comment
            name: "m"
            platform: "onnxruntime_onnx"
            backend: "onnxruntime"
            version_policy: { latest { num_versions: 3 } }
            max_batch_size: 8
            input [
              { name: "a" data_type: TYPE_FP32 dims: [ 3, -1 ] format: FORMAT_NONE },
              { name: "b" data_type: TYPE_STRING dims: 1 dims: 2 optional: true }
            ]
            output { name: 'c', data_type: 9; dims: 4; label_filename: "labels.txt" }
            instance_group [ { count: 2 kind: KIND_CPU }, { kind: KIND_MODEL } ]
            default_model_filename: "x.onnx"
            dynamic_batching <
              preferred_batch_size: [ 4, 2 ]
              max_queue_delay_microseconds: 100
              preserve_ordering: true
              default_queue_policy {
                timeout_action: REJECT default_timeout_microseconds: 5000 allow_timeout_override: True
                max_queue_size: 0x10
              }
            >
            parameters { key: "k" value: { string_value: "v" "w" } }
            parameters [ { key: "l", value { string_value: "1" } } ]
            model_warmup [ {
              name: "w" batch_size: 2 count: 3
              inputs { key: "a" value: { data_type: TYPE_FP32 dims: [ 3, 5 ] random_data: true } }
              inputs { key: "b" value: { data_type: TYPE_STRING dims: [ 1, 2 ] input_data_file: "row" } }
            } ]
            optimization { input_pinned_memory { enable: true } }
            response_cache { enable: false }
            model_transaction_policy { decoupled: false }
            """);
        assertThat(c.platform()).isEqualTo("onnxruntime_onnx");
        assertThat(c.backend()).isEqualTo("onnxruntime");
        assertThat(c.modelFile()).isEqualTo("x.onnx");
        assertThat(c.maxBatchSize()).isEqualTo(8);
        assertThat(c.inputs())
                .containsExactly(
                        new TensorSpec("a", DataType.FP32, Shape.of(3, -1)),
                        new TensorSpec("b", DataType.BYTES, Shape.of(1, 2), true));
        assertThat(c.outputs()).containsExactly(new TensorSpec("c", DataType.INT64, Shape.of(4)));
        assertThat(c.versionPolicy()).isEqualTo(new VersionPolicy(VersionPolicy.Kind.LATEST, 3, List.of()));
        assertThat(c.batching()).isEqualTo(new DynamicBatching(List.of(2, 4), Duration.ofNanos(100_000), true));
        assertThat(c.queue()).isEqualTo(new QueuePolicy(16, Duration.ofMillis(5), true));
        assertThat(c.instances()).isEqualTo(3);
        assertThat(c.parameters()).isEqualTo(Map.of("k", "vw", "l", "1"));
        assertThat(c.labels()).isEqualTo(Map.of("c", List.of("cat", "dog")));
        assertThat(c.warmups())
                .containsExactly(new WarmupSample(
                        "w",
                        2,
                        3,
                        Map.of(
                                "a", new WarmupInput(DataType.FP32, Shape.of(3, 5), WarmupInput.Data.RANDOM, ""),
                                "b", new WarmupInput(DataType.BYTES, Shape.of(1, 2), WarmupInput.Data.FILE, "row"))));
    }

    @Test
    void anEmptyTextLeavesEverythingOpen() {
        assertThat(readWell("")).isEqualTo(ModelConfig.unspecified("m"));
    }

    @Test
    void otherVersionPoliciesAreRead() {
        assertThat(readWell("version_policy { all { } }").versionPolicy().kind())
                .isEqualTo(VersionPolicy.Kind.ALL);
        assertThat(readWell("version_policy { specific { versions: [3, 1] } }")
                        .versionPolicy()
                        .versions())
                .containsExactly(1L, 3L);
        assertThat(readWell("version_policy: { latest: {} }").versionPolicy()).isEqualTo(VersionPolicy.LATEST);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "\"a\\tb\"|a\tb",
                "'it''s'|its",
                "\"\\x41\\102\\u00e9\"|AB\u00e9",
                "\"\\U0001F600\"|\uD83D\uDE00",
                "'say \"x\"'|say \"x\"",
            })
    void stringsMayBeWrittenInEveryWay(String written, String meant) {
        assertThat(readWell("parameters { key: 'k' value { string_value: " + written + " } }")
                        .parameters())
                .containsEntry("k", meant);
    }

    @ParameterizedTest
    @ValueSource(strings = {"8", "010", "0x8"})
    void numbersMayBeWrittenInEveryBase(String eight) {
        assertThat(readWell("max_batch_size: " + eight).maxBatchSize()).isEqualTo(8);
    }

    @Test
    void aByteOrderMarkIsNoProblem() {
        assertThat(readWell("\uFEFFmax_batch_size: 1").maxBatchSize()).isEqualTo(1);
    }

    @Test
    void anUnknownFieldIsToldWithItsPlaceAndTheNearestName() {
        Problem p = only("name: \"m\"\n  max_batchsize: 4\n");
        assertThat(p.toString())
                .isEqualTo(model.resolve("config.pbtxt")
                        + ":2:3: unknown field 'max_batchsize' (did you mean 'max_batch_size'?)");
    }

    @Test
    void aFieldInTheWrongPlaceIsToldWhereItBelongs() {
        assertThat(only("max_queue_delay_microseconds: 4").remedy()).isEqualTo("it belongs into 'dynamic_batching'");
    }

    @Test
    void anUnknownFieldOfABlockNamesTheBlock() {
        Problem p = only("dynamic_batching { zzz: 1 }");
        assertThat(p.message()).isEqualTo("unknown field 'zzz' in 'dynamic_batching'");
        assertThat(p.remedy()).startsWith("fields of 'dynamic_batching': preferred_batch_size,");
    }

    @Test
    void allProblemsAreReportedTogether() {
        assertThat(complaints("""
            name: "other"
            max_batch_size: -1
            platfrom: "x"
            input { dims: [ 1 ] data_type: TYPE_FP32 }
            input { name: "a" dims: 0 }
            output { name: "b" data_type: TYPE_FP33 dims: 1 }
            output { name: "c" data_type: TYPE_FP32 }
            max_batch_size: 4
            """))
                .containsExactlyInAnyOrder(
                        "1:7 unexpected directory name 'm' for model 'other', directory name must equal model name",
                        "2:17 'max_batch_size' must be non-negative value for m",
                        "3:1 unknown field 'platfrom'",
                        "4:7 model input must specify 'name' for m",
                        "5:7 model input 'a' must specify 'data_type' for m",
                        "5:25 model input 'a' dimension must be integer >= 1, or -1 to indicate a variable-size"
                                + " dimension for m",
                        "6:31 'TYPE_FP33' is not a value of 'data_type' (expected: a name of DataType)",
                        "7:8 model output 'c' must specify 'dims' for m",
                        "8:1 'max_batch_size' is given twice, first in line 2 (expected: once)");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "runtime: 'x'|runtime",
                "optimization { cuda { graphs: true } }|optimization.cuda.graphs",
                "optimization { cuda { graph_spec { } } }|optimization.cuda.graph_spec",
                "instance_group { secondary_devices { } }|instance_group.secondary_devices",
            })
    void aFieldThatIsNotHonouredIsRefusedByItsName(String text, String field) {
        Problem p = only(text);
        assertThat(p.message()).startsWith("field '" + field + "' is not supported, ");
        assertThat(p.remedy()).isNotBlank();
    }

    @Test
    void aGpuInstanceGroupIsRefused() {
        Problem p = only("instance_group { kind: KIND_GPU }");
        assertThat(p.message())
                .isEqualTo("instance group m_0 of model m has kind KIND_GPU but server does not support GPUs");
        assertThat(p.remedy())
                .isEqualTo("use KIND_CPU or KIND_AUTO, or serve it on a machine with a GPU and the plugin cuda");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "max_batch_size: 4 dynamic_batching { preferred_batch_size: 8 }|1:60 dynamic batching preferred size"
                        + " must be <= max batch size for m",
                "dynamic_batching { preferred_batch_size: 0 }|1:42 dynamic batching preferred size must be positive"
                        + " for m",
                "version_policy { all {} latest {} }|1:25 'latest' cannot be given together with 'all' of line 1",
                "default_model_filename: \"../x\"|1:25 'default_model_filename' '../x' must lie inside the version's"
                        + " directory",
                "max_batch_size: 99999999999|1:17 '99999999999' is not a value of 'max_batch_size' (expected: a whole"
                        + " number of 32 bits)",
                "max_batch_size: \"4\"|1:17 '\"4\"' is not a value of 'max_batch_size' (expected: a whole number of 32"
                        + " bits)",
                "max_batch_size { }|1:16 'max_batch_size' is a block (expected: a whole number of 32 bits)",
                "dynamic_batching: 3|1:19 '3' is not a value of 'dynamic_batching' (expected: a block)",
                "name: m|1:7 'm' is not a value of 'name' (expected: a string in quotes)",
            })
    void aWrongValueIsToldWithWhatWasExpected(String text, String complaint) {
        assertThat(complaints(text)).containsExactly(complaint);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "input [ { name: \"a\" }|1:22 unexpected the end of the file in the list that starts in line 1"
                        + " (expected: ',' or ']')",
                "input {|1:7 the block that starts here has no end",
                "}|1:1 unexpected '}', nothing is open here",
                "name = \"m\"|1:6 unexpected character '='",
                "name: \"m|1:7 the string that starts here has no end",
                "name|1:5 unexpected the end of the file after 'name' (expected: ':' or '{')",
                "name: \"\\q\"|1:8 unknown escape '\\q'",
                "name: \"\\xff\"|1:7 the string that starts here is not valid UTF-8",
                "[type.googleapis.com/x] { }|1:1 unexpected '[' (expected: the name of a field)",
            })
    void brokenSyntaxIsToldWithItsPlace(String text, String complaint) {
        assertThat(complaints(text)).containsExactly(complaint);
    }

    @ParameterizedTest
    @CsvSource({"FP32,TYPE_FP32", "BYTES,TYPE_STRING", "TYPE_FLOAT32,TYPE_FP32", "TYPE_INT,TYPE_INT8"})
    void aTypeUnderAnotherNameIsGuessed(String written, String meant) {
        assertThat(only("model_warmup { inputs { key: 'a' value { data_type: " + written
                                + " zero_data: true dims: 1 } } }")
                        .remedy())
                .contains("'" + meant + "'");
    }

    @Test
    void deepNestingIsRefusedAndDoesNotOverflow() {
        assertThat(complaints("a {".repeat(100_000)))
                .hasSize(1)
                .allMatch(c -> c.contains("50 blocks inside each other"));
    }

    @Test
    void aHundredProblemsAreEnough() {
        assertThat(complaints("zzz: 1\n".repeat(10_000)))
                .hasSize(101)
                .last()
                .asString()
                .contains("further problems");
    }

    @Test
    void aMissingLabelFileIsAProblemOfItsField() {
        assertThat(only("output { name: 'a' data_type: TYPE_FP32 dims: 1 label_filename: 'gone.txt' }")
                        .message())
                .isEqualTo("label cannot read file 'gone.txt': no such file");
    }

    @Test
    void labelsOutsideTheModelAreRefusedEvenThroughALink(@TempDir Path elsewhere) throws IOException {
        Path secret = Fakes.write(elsewhere.resolve("secret"), "x");
        Files.createSymbolicLink(model.resolve("link"), secret);
        assertThat(only("output { name: 'a' data_type: TYPE_FP32 dims: 1 label_filename: 'link' }")
                        .message())
                .contains("lies outside of");
        assertThat(complaints("output { name: 'a' data_type: TYPE_FP32 dims: 1 label_filename: '../x' }"))
                .last()
                .asString()
                .contains("lies outside of");
    }

    @Test
    void hostileTextInMessagesIsCutAndEscaped() {
        String message = only("name: \"" + "\\n".repeat(500) + "\"").message();
        assertThat(message).contains("\\u000a").hasSizeLessThan(600).doesNotContain("\n");
    }
}
