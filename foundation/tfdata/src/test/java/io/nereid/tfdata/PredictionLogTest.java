// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tfdata;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.protobuf.ProtobufWriter;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ServableId;
import io.nereid.spi.Signature;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PredictionLogTest {
    private static final List<String> LOGS = List.of("predict", "classify", "regress", "multi", "session", "streamed");

    @TempDir
    Path folder;

    private static ModelMetadata model() {
        List<TensorSpec> x = List.of(new TensorSpec("x", DataType.FP32, Shape.of(-1, 2)));
        List<TensorSpec> examples = List.of(new TensorSpec("inputs", DataType.BYTES, Shape.of(-1)));
        return new ModelMetadata(
                new ServableId("m", 4),
                "",
                x,
                x,
                0,
                Map.of(),
                Map.of(
                        "serving_default", new Signature(Signature.PREDICT, x, x, Map.of()),
                        "classify_x_to_y", new Signature(Signature.CLASSIFY, examples, x, Map.of()),
                        "regress_x_to_y", new Signature(Signature.REGRESS, x, x, Map.of())));
    }

    private static PredictionLog log(String name) {
        return PredictionLog.parse(Fixtures.of("log/" + name));
    }

    private static void release(List<InferenceRequest> requests) {
        requests.forEach(InferenceRequest::release);
    }

    @Test
    void everyLogIsReadAndWrittenByteForByte() {
        for (String name : LOGS.subList(0, 5)) {
            assertThat(log(name).toBytes()).as(name).isEqualTo(Fixtures.of("log/" + name));
        }
        PredictionLog predict = log("predict");
        assertThat(predict.kind()).isEqualTo(PredictionLog.Kind.PREDICT);
        assertThat(predict.model()).isEqualTo(ModelSpec.of("half_plus_two", 123, "serving_default"));
        assertThat(predict.samplingRate()).isEqualTo(0.25);
        assertThat(predict.timestampSecs()).isEqualTo(1700000000);
    }

    @Test
    void aLogOfTensorsIsWhatTensorFlowWouldHaveWritten() {
        List<InferenceRequest> requests = log("predict").requests(model());
        List<Tensor> outputs = log("predict").outputs();
        ModelSpec spec = ModelSpec.of("half_plus_two", 123, "serving_default");
        ProtobufWriter out = new ProtobufWriter();
        PredictionLog.writePredict(out, spec, spec, requests.get(0).inputs(), List.of("y"), outputs, 0.25, 1700000000);
        PredictionLog back = PredictionLog.parse(out.toByteArray());
        assertThat(back.samplingRate()).isEqualTo(0.25);
        List<InferenceRequest> again = back.requests(model());
        List<Tensor> outputsAgain = back.outputs();
        assertThat(Fixtures.bytes(again.get(0).inputs().get(0)))
                .isEqualTo(Fixtures.bytes(requests.get(0).inputs().get(0)));
        assertThat(Fixtures.bytes(outputsAgain.get(0))).isEqualTo(Fixtures.bytes(outputs.get(0)));
        assertThat(outputs.get(0).name()).isEqualTo("y");
        release(requests);
        release(again);
        Tensor.closeAll(outputs);
        Tensor.closeAll(outputsAgain);
    }

    @Test
    void everyLogThatCanBeRunBecomesRequestsForTheModelAtHand() {
        List<InferenceRequest> predict = log("predict").requests(model());
        assertThat(predict).hasSize(1);
        assertThat(predict.get(0).model().model()).isEqualTo("m");
        assertThat(predict.get(0).model().version()).isEqualTo(4);
        assertThat(predict.get(0).options().signature()).isEqualTo("serving_default");
        assertThat(predict.get(0).outputs()).extracting(o -> o.name()).containsExactly("y");
        assertThat(predict.get(0).inputs()).extracting(Tensor::name).containsExactlyInAnyOrder("x", "s");
        release(predict);

        List<InferenceRequest> classify = log("classify").requests(model());
        Tensor messages = classify.get(0).inputs().get(0);
        assertThat(messages.shape()).isEqualTo(Shape.of(1));
        byte[] context = Fixtures.of("context");
        byte[] example = Fixtures.of("example");
        assertThat(messages.byteLength()).isEqualTo(4 + context.length + example.length);
        release(classify);

        List<InferenceRequest> regress = log("regress").requests(model());
        assertThat(regress.get(0).inputs().get(0).shape()).isEqualTo(Shape.of(2, 2));
        release(regress);

        List<InferenceRequest> multi = log("multi").requests(model());
        assertThat(multi).extracting(r -> r.options().signature()).containsExactly("regress_x_to_y", "classify_x_to_y");
        release(multi);
    }

    @Test
    void logsThatCannotBeRunSayWhichTheyAre() {
        assertThatThrownBy(() -> log("session").requests(model()))
                .hasMessage("Unsupported log_type for warmup: session_run_log");
        assertThatThrownBy(() -> log("streamed").requests(model()))
                .hasMessage("Unsupported log_type for warmup: predict_streamed_log");
        assertThat(PredictionLog.parse(new byte[0]).requests(model())).isEmpty();
    }

    @Test
    void aFileThatTensorFlowWroteReadsAndIsWrittenAlike() throws IOException {
        byte[] original;
        try (var in = getClass().getResourceAsStream("records.tfrecord")) {
            original = in.readAllBytes();
        }
        Path file = folder.resolve("records");
        Files.write(file, original);
        List<byte[]> records = TfRecordFile.readAll(file, 1000);
        assertThat(records).hasSize(LOGS.size());
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (TfRecordFile.Writer writer = new TfRecordFile.Writer(out)) {
            for (int i = 0; i < records.size(); i++) {
                assertThat(records.get(i)).isEqualTo(Fixtures.of("log/" + LOGS.get(i)));
                writer.write(records.get(i));
            }
            assertThat(writer.bytes()).isEqualTo(original.length);
        }
        assertThat(out.toByteArray()).isEqualTo(original);
        assertThatThrownBy(() -> TfRecordFile.readAll(file, 5)).hasMessageContaining("more than 5 records");
    }

    @Test
    void aTruncatedOrDamagedFileFailsWithItsPositionAndNeverReturnsWrongBytes() throws IOException {
        Path file = folder.resolve("records");
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (TfRecordFile.Writer writer = new TfRecordFile.Writer(out)) {
            writer.write(new byte[] {1, 2, 3});
            writer.write(new byte[] {4, 5});
        }
        byte[] whole = out.toByteArray();
        for (int cut = 1; cut < whole.length; cut++) {
            if (cut == 19) {
                continue;
            }
            Files.write(file, java.util.Arrays.copyOf(whole, cut));
            assertThatThrownBy(() -> TfRecordFile.readAll(file, 10))
                    .as("cut at %s", cut)
                    .isInstanceOf(ServingException.class)
                    .hasMessageContaining("record " + (cut < 19 ? 0 : 1))
                    .satisfies(e -> assertThat(((ServingException) e).code()).isEqualTo(ErrorCode.DATA_LOSS));
        }
        for (int i = 0; i < whole.length; i++) {
            byte[] damaged = whole.clone();
            damaged[i] ^= 0x10;
            Files.write(file, damaged);
            assertThatThrownBy(() -> TfRecordFile.readAll(file, 10))
                    .as("byte %s", i)
                    .hasMessageContaining("is damaged at record " + (i < 19 ? 0 : 1));
        }
        assertThatThrownBy(() -> TfRecordFile.readAll(folder.resolve("none"), 10))
                .satisfies(e -> assertThat(((ServingException) e).code()).isEqualTo(ErrorCode.NOT_FOUND));
    }
}
