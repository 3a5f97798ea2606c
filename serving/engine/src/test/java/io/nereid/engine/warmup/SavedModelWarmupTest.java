// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.warmup;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.engine.EngineFixture;
import io.nereid.engine.options.WarmupOptions;
import io.nereid.protobuf.ProtobufWriter;
import io.nereid.spi.ModelRef;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tfdata.ModelSpec;
import io.nereid.tfdata.PredictionLog;
import io.nereid.tfdata.PredictionLog.Kind;
import io.nereid.tfdata.TfRecordFile;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SavedModelWarmupTest {
    @TempDir
    Path root;

    private EngineFixture fixture;

    @BeforeEach
    void fixture() throws Exception {
        fixture = new EngineFixture(root);
    }

    @AfterEach
    void everyModelIsClosed() {
        fixture.close();
        assertThat(fixture.backend.open).hasValue(0);
    }

    @Test
    void recordedRequestsRunBeforeTheVersionServesAndDoNotCount() throws Exception {
        record("signatures", predict("", "IN0", 1), predict("plus_ten", "X", 2));
        fixture.start();
        assertThat(fixture.backend.runs).containsExactly("m/1 [0] 1", "m/1 plus_ten[0] 2");
        assertThat(fixture.engine().statistics("m", 1).get(0).success().count()).isZero();
        assertThat(fixture.states()).isEqualTo("m 1 AVAILABLE");
    }

    @Test
    void everyInstanceIsWarmedAsOftenAsAskedFor() throws Exception {
        fixture.options.warmup(new WarmupOptions(true, 3, 2, false));
        record("two", predict("", "IN0", 1));
        fixture.start();
        assertThat(fixture.backend.runs)
                .containsExactlyInAnyOrder(
                        "m/1 [0] 1", "m/1 [0] 1", "m/1 [0] 1", "m/1 [1] 1", "m/1 [1] 1", "m/1 [1] 1");
    }

    @Test
    void eachRecordMayAlsoRunInBatchesOfEverySize() throws Exception {
        fixture.options.warmup(new WarmupOptions(true, 1, 1, true));
        record("", predict("", "IN0", 1));
        fixture.start();
        assertThat(fixture.backend.runs).containsExactly("m/1 [0] 1", "m/1 [0] 2", "m/1 [0] 4");
    }

    @Test
    void warmingUpMayBeSwitchedOff() throws Exception {
        fixture.options.warmup(new WarmupOptions(false, 1, 1, false));
        record("", predict("", "IN0", 1));
        fixture.start();
        assertThat(fixture.backend.runs).isEmpty();
        assertThat(fixture.ask(ModelRef.latest("m"))).isEqualTo(1);
    }

    @Test
    void examplesAreFedToTheSignatureThatClassifies() throws Exception {
        record("signatures", classify());
        fixture.start();
        assertThat(fixture.backend.runs).containsExactly("m/1 classify[0] 2");
    }

    @Test
    void aRecordWithoutALogIsPassedOver() throws Exception {
        record("", new byte[0], predict("", "IN0", 1));
        fixture.start();
        assertThat(fixture.backend.runs).hasSize(1);
    }

    @Test
    void aRecordThatFailsFailsTheLoad() throws Exception {
        record("failing", predict("", "IN0", 1));
        fixture.start();
        assertThat(fixture.states()).isEqualTo("m 1 FAILED");
        assertThat(reason()).contains("failed to run warmup record 0 of ").contains("a run of m/1 failed");
    }

    @Test
    void aRecordForAnotherModelsInputsFailsTheLoad() throws Exception {
        record("", predict("", "IN0", 1), predict("", "OTHER", 1));
        fixture.start();
        assertThat(reason()).contains("failed to run warmup record 1 of ").contains("IN0");
    }

    @Test
    void aLogThatCannotBeRunFailsTheLoad() throws Exception {
        record("", new PredictionLog(Kind.SESSION_RUN, null, 0, 0, new byte[0], null).toBytes());
        fixture.start();
        assertThat(reason()).contains("Unsupported log_type for warmup: session_run_log");
    }

    @Test
    void tooManyRecordsFailTheLoad() throws Exception {
        byte[][] records = new byte[SavedModelWarmup.MOST + 1][];
        byte[] one = predict("", "IN0", 1);
        Arrays.fill(records, one);
        record("", records);
        fixture.start();
        assertThat(reason()).contains("Number of warmup records exceeds the maximum (1000) at ");
        assertThat(fixture.backend.runs).isEmpty();
    }

    @Test
    void aDamagedFileFailsTheLoad() throws Exception {
        Path file = record("", predict("", "IN0", 1));
        byte[] bytes = Files.readAllBytes(file);
        bytes[20] ^= 1;
        Files.write(file, bytes);
        fixture.start();
        assertThat(reason()).contains("is damaged at record 0");
    }

    private String reason() {
        return String.valueOf(fixture.engine().index().get(0).versions().get(0).reason());
    }

    private Path record(String words, byte[]... records) throws IOException {
        Path version = fixture.stored("m", 1, words);
        Path file = version.resolve(SavedModelWarmup.FILE);
        Files.createDirectories(version.resolve("assets.extra"));
        try (TfRecordFile.Writer out = new TfRecordFile.Writer(file)) {
            for (byte[] record : records) {
                out.write(record);
            }
        }
        return file;
    }

    private static byte[] predict(String signature, String input, int rows) {
        ProtobufWriter out = new ProtobufWriter();
        ModelSpec spec = new ModelSpec("another", 7L, null, signature);
        List<Tensor> inputs = new ArrayList<>(List.of(EngineFixture.floats(input, Shape.of(rows, 1), new float[rows])));
        PredictionLog.writePredict(out, spec, spec, inputs, List.of(), null, 1, 0);
        Tensor.closeAll(inputs);
        return out.toByteArray();
    }

    /** Two examples without features. */
    private static byte[] classify() {
        ProtobufWriter out = new ProtobufWriter();
        int spec = out.begin(1);
        out.bytesField(3, "classify".getBytes(StandardCharsets.UTF_8));
        out.end(spec);
        int input = out.begin(2);
        int list = out.begin(1);
        out.bytesField(1, new byte[] {10, 0});
        out.bytesField(1, new byte[] {10, 0});
        out.end(list);
        out.end(input);
        return new PredictionLog(Kind.CLASSIFY, null, 0, 0, out.toByteArray(), null).toBytes();
    }
}
