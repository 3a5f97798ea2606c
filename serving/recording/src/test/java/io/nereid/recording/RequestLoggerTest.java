// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.recording;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.protobuf.ProtobufReader;
import io.nereid.protobuf.StringInterner;
import io.nereid.recording.RequestLogger.LogCount;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.management.LoggingConfig;
import io.nereid.spi.management.ModelListEntry;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tfdata.PredictMessageReader;
import io.nereid.tfdata.PredictionLog;
import io.nereid.tfdata.TfRecordFile;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RequestLoggerTest {
    @TempDir
    private Path dir = Path.of("");

    private final AtomicInteger made = new AtomicInteger();
    private final AtomicInteger freed = new AtomicInteger();
    private final Doubling engine = new Doubling();
    private final List<RequestLogger> recorders = new ArrayList<>();

    /** An engine that responds {@code answers} times with the doubled bytes, or fails for the model {@code bad}. */
    private final class Doubling implements InferenceEngine {
        int answers = 1;

        @Override
        public InferenceCall infer(InferenceRequest request, ResponseSink sink) {
            if (request.model().model().equals("bad")) {
                request.release();
                sink.fail(ServingException.of(ErrorCode.UNAVAILABLE, "no"));
            } else {
                Tensor in = request.inputs().get(0);
                for (int i = 1; i <= answers; i++) {
                    Tensor out = tensor("out", in.buffer().get(0) * 2, in.byteLength());
                    sink.next(
                            new InferenceResponse(
                                    new ServableId(request.model().model(), 7), "", List.of(out), Map.of()),
                            i == answers);
                }
                request.release();
            }
            return () -> {};
        }

        @Override
        public ModelMetadata metadata(ModelRef model) {
            throw ServingException.of(ErrorCode.NOT_FOUND, "none");
        }

        @Override
        public ModelConfig config(ModelRef model) {
            throw ServingException.of(ErrorCode.NOT_FOUND, "none");
        }
    }

    /** The responses of a client. */
    private static final class Client implements ResponseSink {
        final List<Integer> answers = new ArrayList<>();

        @Nullable ServingException failure;

        @Override
        public void next(InferenceResponse response, boolean last) {
            answers.add((int) response.outputs().get(0).buffer().get(0));
            response.close();
        }

        @Override
        public void fail(ServingException e) {
            failure = e;
        }
    }

    @AfterEach
    void everythingIsGivenBack() {
        recorders.forEach(RequestLogger::close);
        assertThat(freed.get()).isEqualTo(made.get());
    }

    private Tensor tensor(String name, int value, int length) {
        ByteBuffer bytes = ByteBuffer.allocateDirect(length);
        for (int i = 0; i < length; i++) {
            bytes.put(i, (byte) value);
        }
        made.incrementAndGet();
        return Tensor.over(
                name, DataType.INT8, Shape.of(length), MemoryRegion.wrap(bytes, freed::incrementAndGet), 0, length);
    }

    private RequestLogger recorder(RequestLoggerOptions options) {
        RequestLogger recorder = new RequestLogger(engine, Clock.system(), options);
        recorders.add(recorder);
        return recorder;
    }

    private static ModelListEntry model(String name, @Nullable LoggingConfig logging) {
        return new ModelListEntry(name, "/models/" + name, "tensorflow", null, Map.of(), logging);
    }

    private LoggingConfig to(String prefix, double rate) {
        return new LoggingConfig("", dir.resolve(prefix).toString(), rate);
    }

    private Client ask(RequestLogger recorder, String model, int value) {
        return ask(recorder, ModelRef.latest(model), value, "", List.of());
    }

    private Client ask(
            RequestLogger recorder, ModelRef model, int value, String signature, List<RequestedOutput> outputs) {
        Client client = new Client();
        recorder.infer(
                new InferenceRequest(
                        model,
                        "id",
                        List.of(tensor("in", value, 4)),
                        outputs,
                        Map.of(),
                        Long.MAX_VALUE,
                        0,
                        InferenceRequest.Options.NONE.withSignature(signature)),
                client);
        return client;
    }

    private List<Path> files() throws IOException {
        try (Stream<Path> all = Files.list(dir)) {
            return all.sorted().toList();
        }
    }

    private static List<PredictionLog> logs(Path file) {
        return TfRecordFile.readAll(file, 1_000_000).stream()
                .map(PredictionLog::parse)
                .toList();
    }

    private static List<String> shown(PredictMessageReader message) {
        List<Tensor> tensors = message.tensors();
        List<String> all =
                tensors.stream().map(t -> t + "=" + t.buffer().get(0)).toList();
        Tensor.closeAll(tensors);
        return all;
    }

    private static PredictMessageReader request(PredictionLog log) {
        PredictMessageReader message = new PredictMessageReader(new ProtobufReader(), new StringInterner());
        message.scanRequest(region(log.request()));
        return message;
    }

    private static MemoryRegion region(byte[] bytes) {
        return MemoryRegion.wrap(ByteBuffer.allocateDirect(bytes.length).put(bytes), () -> {});
    }

    @Test
    void aRequestIsWrittenWithItsResponseAndWhereItCameFrom() throws Exception {
        RequestLogger recorder = recorder(RequestLoggerOptions.DEFAULT);
        recorder.configure(List.of(model("m", to("deep/er", 1)), model("other", null)));
        assertThat(ask(recorder, "m", 3).answers).containsExactly(6);
        assertThat(ask(recorder, "other", 4).answers).containsExactly(8);
        ask(
                recorder,
                new ModelRef("m", ModelRef.ANY, "stable"),
                5,
                "serving_default",
                List.of(new RequestedOutput("out", 0)));
        recorder.completeFiles().toCompletableFuture().get(10, TimeUnit.SECONDS);
        try (Stream<Path> list = Files.list(dir.resolve("deep"))) {
            List<Path> all = list.toList();
            assertThat(all).hasSize(1);
            assertThat(all.get(0).getFileName().toString()).matches("er-\\d{8}T\\d{6}Z-0\\.tfrecord");
            List<PredictionLog> logs = logs(all.get(0));
            assertThat(logs).hasSize(2);
            PredictionLog first = logs.get(0);
            assertThat(first.kind()).isEqualTo(PredictionLog.Kind.PREDICT);
            assertThat(first.samplingRate()).isEqualTo(1);
            assertThat(first.timestampSecs()).isGreaterThan(1_700_000_000L);
            assertThat(first.model()).hasToString("ModelSpec[name=m, version=7, label=null, signature=]");
            PredictMessageReader asked = request(first);
            assertThat(asked.spec()).hasToString("ModelSpec[name=m, version=-1, label=null, signature=]");
            assertThat(shown(asked)).containsExactly("INT8[4] 'in'=3");
            List<Tensor> answer = first.outputs();
            assertThat(answer).singleElement().satisfies(t -> {
                assertThat(t).hasToString("INT8[4] 'out'");
                assertThat(t.buffer().get(0)).isEqualTo((byte) 6);
            });
            Tensor.closeAll(answer);
            PredictMessageReader second = request(logs.get(1));
            assertThat(second.spec())
                    .hasToString("ModelSpec[name=m, version=-1, label=stable, signature=serving_default]");
            assertThat(second.filter()).containsExactly(new RequestedOutput("out", 0));
        }
        assertThat(recorder.counts()).containsExactly(new LogCount("m", ErrorCode.OK, 2));
    }

    @Test
    void whatFailedIsNotWrittenAndWhatHasNoOneResponseIsWrittenWithout() throws Exception {
        RequestLogger recorder = recorder(RequestLoggerOptions.DEFAULT);
        recorder.configure(List.of(model("m", to("m", 1)), model("bad", to("bad", 1))));
        assertThat(ask(recorder, "bad", 1).failure).hasMessage("no");
        ask(recorder, ModelRef.latest("m"), 1, "", List.of(new RequestedOutput("out", 3)));
        engine.answers = 3;
        assertThat(ask(recorder, "m", 2).answers).containsExactly(4, 4, 4);
        recorder.close();
        assertThat(files()).hasSize(1);
        assertThat(logs(files().get(0))).extracting(PredictionLog::response).containsExactly(null, null);
    }

    @Test
    void configurationTakesEffectWithTheNextRequestAndCompletesTheOldFiles() throws Exception {
        RequestLogger recorder = recorder(RequestLoggerOptions.DEFAULT);
        ask(recorder, "m", 1);
        recorder.configure(List.of(model("m", to("a", 1))));
        ask(recorder, "m", 2);
        recorder.configure(List.of(model("m", to("b", 1))));
        ask(recorder, "m", 3);
        recorder.configure(List.of(model("m", to("b", 0))));
        ask(recorder, "m", 4);
        recorder.completeFiles().toCompletableFuture().get(10, TimeUnit.SECONDS);
        List<Path> all = files();
        assertThat(all).hasSize(2);
        assertThat(shown(request(logs(all.get(0)).get(0)))).containsExactly("INT8[4] 'in'=2");
        assertThat(logs(all.get(1))).hasSize(1);
        assertThat(shown(request(logs(all.get(1)).get(0)))).containsExactly("INT8[4] 'in'=3");
    }

    @Test
    void modelsThatShareAPrefixHaveFilesOfTheirOwn() throws Exception {
        RequestLogger recorder = recorder(RequestLoggerOptions.DEFAULT);
        recorder.configure(List.of(model("m", to("log", 1)), model("n", to("log", 1))));
        ask(recorder, "m", 1);
        ask(recorder, "n", 2);
        recorder.close();
        assertThat(files())
                .extracting(f -> f.getFileName().toString().replaceFirst("-\\d{8}T\\d{6}Z-", "@"))
                .containsExactly("log-m@0.tfrecord", "log-n@0.tfrecord");
    }

    @Test
    void aShareOfTheRequestsIsChosen() throws Exception {
        RequestLogger recorder = recorder(RequestLoggerOptions.DEFAULT.withQueue(10_000, 1 << 30));
        recorder.configure(List.of(model("m", to("m", 0.25))));
        for (int i = 0; i < 4000; i++) {
            ask(recorder, "m", 1);
        }
        recorder.close();
        long written = recorder.counts().get(0).count();
        assertThat(written).isBetween(800L, 1200L); // more than seven standard deviations
    }

    @Test
    void filesAreCompletedByRecordsBytesAndAge() throws Exception {
        RequestLogger byRecords = recorder(RequestLoggerOptions.DEFAULT.withFiles(2, 1 << 20, Duration.ofHours(1)));
        byRecords.configure(List.of(model("m", to("r", 1))));
        for (int i = 0; i < 5; i++) {
            ask(byRecords, "m", i);
        }
        byRecords.close();
        assertThat(files()).hasSize(3);
        assertThat(files().stream().map(f -> logs(f).size()).toList()).containsExactly(2, 2, 1);

        RequestLogger byBytes = recorder(RequestLoggerOptions.DEFAULT.withFiles(1000, 1, Duration.ofHours(1)));
        byBytes.configure(List.of(model("m", to("s", 1))));
        ask(byBytes, "m", 1);
        ask(byBytes, "m", 2);
        byBytes.close();
        assertThat(files()).hasSize(5);

        RequestLogger byAge = recorder(RequestLoggerOptions.DEFAULT.withFiles(1000, 1 << 20, Duration.ofMillis(1)));
        byAge.configure(List.of(model("m", to("t", 1))));
        ask(byAge, "m", 1);
        awaitFiles(6);
        assertThat(files()).noneMatch(f -> f.toString().endsWith(".part"));
    }

    /** Waits for this number of complete files. */
    private void awaitFiles(int count) throws IOException {
        long from = Clock.system().nanos();
        while (files().stream().filter(f -> f.toString().endsWith(".tfrecord")).count() < count) {
            assertThat(Clock.system().nanos() - from).isLessThan(TimeUnit.SECONDS.toNanos(20));
            Thread.onSpinWait();
        }
    }

    @Test
    void aSecondServerWithTheSamePrefixTakesOtherNumbers() throws Exception {
        Clock still = new Clock() {
            @Override
            public long nanos() {
                return 0;
            }

            @Override
            public long millis() {
                return 0;
            }
        };
        for (int i = 0; i < 2; i++) {
            RequestLogger recorder = new RequestLogger(engine, still);
            recorder.configure(List.of(model("m", to("m", 1))));
            ask(recorder, "m", i);
            recorder.close();
        }
        assertThat(files())
                .extracting(f -> f.getFileName().toString())
                .containsExactly("m-19700101T000000Z-0.tfrecord", "m-19700101T000000Z-1.tfrecord");
    }

    /** A disk that can block and fail. */
    private static final class Disk implements RequestLogFile.Opener {
        final CountDownLatch held = new CountDownLatch(1);
        final CountDownLatch reached = new CountDownLatch(1);
        final AtomicBoolean full = new AtomicBoolean();
        boolean holds;

        @Override
        public RequestLogFile open(String name, long nowNanos) throws IOException {
            Path part = Path.of(name + ".part");
            FileChannel channel = FileChannel.open(part, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
            OutputStream out = java.nio.channels.Channels.newOutputStream(channel);
            reached.countDown();
            if (holds) {
                try {
                    held.await();
                } catch (InterruptedException e) {
                    throw new IOException(e);
                }
            }
            return new RequestLogFile(
                    Path.of(name),
                    part,
                    channel,
                    new TfRecordFile.Writer(new OutputStream() {
                        @Override
                        public void write(int b) throws IOException {
                            out.write(b);
                        }

                        @Override
                        public void write(byte[] b, int off, int len) throws IOException {
                            if (full.get()) {
                                out.write(b, off, len / 2);
                                throw new IOException("No space left on device");
                            }
                            out.write(b, off, len);
                        }

                        @Override
                        public void close() throws IOException {
                            out.close();
                        }
                    }),
                    nowNanos);
        }
    }

    @Test
    void whatTheQueueCannotHoldIsLeftOutAndCounted() throws Exception {
        Disk disk = new Disk();
        disk.holds = true;
        RequestLogger recorder = new RequestLogger(
                engine, new RequestLogWriter(Clock.system(), RequestLoggerOptions.DEFAULT.withQueue(3, 1000), disk));
        recorders.add(recorder);
        recorder.configure(List.of(model("m", to("m", 1))));
        ask(recorder, "m", 0);
        assertThat(disk.reached.await(10, TimeUnit.SECONDS)).isTrue();
        for (int i = 1; i < 10; i++) {
            assertThat(ask(recorder, "m", i).answers).containsExactly(2 * i);
        }
        disk.held.countDown();
        recorder.close();
        assertThat(recorder.counts())
                .containsExactly(
                        new LogCount("m", ErrorCode.OK, 3), new LogCount("m", ErrorCode.RESOURCE_EXHAUSTED, 7));
        assertThat(logs(files().get(0))).hasSize(3);
    }

    @Test
    void whatIsQueuedIsBoundedInBytes() throws Exception {
        Disk disk = new Disk();
        disk.holds = true;
        RequestLogger recorder = new RequestLogger(
                engine, new RequestLogWriter(Clock.system(), RequestLoggerOptions.DEFAULT.withQueue(100, 20), disk));
        recorders.add(recorder);
        recorder.configure(List.of(model("m", to("m", 1))));
        ask(recorder, "m", 0);
        assertThat(disk.reached.await(10, TimeUnit.SECONDS)).isTrue();
        ask(recorder, "m", 1); // 8 bytes each
        ask(recorder, "m", 2);
        disk.held.countDown();
        recorder.close();
        assertThat(recorder.counts())
                .containsExactly(
                        new LogCount("m", ErrorCode.OK, 2), new LogCount("m", ErrorCode.RESOURCE_EXHAUSTED, 1));
    }

    @Test
    void aFullDiskCostsRecordsButNoRequestAndLeavesAWholeFile() throws Exception {
        Disk disk = new Disk();
        RequestLogger recorder = new RequestLogger(
                engine,
                new RequestLogWriter(Clock.system(), RequestLoggerOptions.DEFAULT.withRetryAfter(Duration.ZERO), disk));
        recorders.add(recorder);
        recorder.configure(List.of(model("m", to("m", 1))));
        ask(recorder, "m", 1);
        awaitFlushed();
        disk.full.set(true);
        ask(recorder, "m", 2);
        awaitFiles(1); // the flushed records were kept
        assertThat(logs(files().get(0))).hasSize(1);
        disk.full.set(false);
        assertThat(ask(recorder, "m", 3).answers).containsExactly(6);
        recorder.close();
        assertThat(files()).hasSize(2).allMatch(f -> f.toString().endsWith(".tfrecord"));
        assertThat(shown(request(logs(files().get(1)).get(0)))).containsExactly("INT8[4] 'in'=3");
    }

    private void awaitFlushed() throws IOException {
        long from = Clock.system().nanos();
        while (files().isEmpty() || Files.size(files().get(0)) == 0) {
            assertThat(Clock.system().nanos() - from).isLessThan(TimeUnit.SECONDS.toNanos(20));
            Thread.onSpinWait();
        }
    }

    @Test
    void aDirectoryThatCannotBeIsCountedUntilItCan() throws Exception {
        Path blocked = Files.writeString(dir.resolve("file"), "in the way");
        RequestLogger recorder = recorder(RequestLoggerOptions.DEFAULT.withRetryAfter(Duration.ZERO));
        recorder.configure(List.of(model("m", to("file/m", 1))));
        assertThat(ask(recorder, "m", 1).answers).containsExactly(2);
        recorder.completeFiles().toCompletableFuture().get(10, TimeUnit.SECONDS);
        assertThat(recorder.counts()).containsExactly(new LogCount("m", ErrorCode.UNAVAILABLE, 1));
        Files.delete(blocked);
        ask(recorder, "m", 2);
        recorder.close();
        assertThat(recorder.counts())
                .containsExactlyInAnyOrder(
                        new LogCount("m", ErrorCode.OK, 1), new LogCount("m", ErrorCode.UNAVAILABLE, 1));
        try (Stream<Path> list = Files.list(blocked)) {
            assertThat(list.map(f -> f.getFileName().toString().replaceFirst(".*Z", "")))
                    .containsExactly("-0.tfrecord");
        }
    }

    @Test
    void filesOfOneModelThatCannotBeWrittenDoNotKeepAnotherFromBeingRecorded() throws Exception {
        Files.writeString(dir.resolve("file"), "in the way");
        RequestLogger recorder = recorder(RequestLoggerOptions.DEFAULT.withRetryAfter(Duration.ofHours(1)));
        recorder.configure(List.of(model("blocked", to("file/m", 1)), model("good", to("good", 1))));
        ask(recorder, "blocked", 1);
        ask(recorder, "good", 2);
        ask(recorder, "blocked", 3);
        recorder.close();
        assertThat(recorder.counts())
                .containsExactlyInAnyOrder(
                        new LogCount("blocked", ErrorCode.UNAVAILABLE, 2), new LogCount("good", ErrorCode.OK, 1));
    }

    @Test
    void whatCannotBeIsRejectedAndChangesNothing() {
        RequestLogger recorder = recorder(RequestLoggerOptions.DEFAULT);
        recorder.configure(List.of(model("m", to("m", 1))));
        String prefix = dir.resolve("x").toString();
        assertRejected(recorder, new LoggingConfig("kafka", prefix, 1), "unknown type 'kafka'");
        assertRejected(recorder, new LoggingConfig("", prefix, 1.5), "sampling_rate 1.5");
        assertRejected(recorder, new LoggingConfig("", prefix, Double.NaN), "sampling_rate NaN");
        assertRejected(recorder, new LoggingConfig("tfrecord", "", 1), "no filename_prefix");
        assertRejected(recorder, new LoggingConfig("tfrecord", "a\0b", 1), "is not a path");
        ask(recorder, "m", 1);
        recorder.close();
        assertThat(recorder.counts()).containsExactly(new LogCount("m", ErrorCode.OK, 1));
    }

    private static void assertRejected(RequestLogger recorder, LoggingConfig logging, String why) {
        assertThatThrownBy(() -> recorder.configure(List.of(model("m", logging))))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                .hasMessageContaining("logging_config of model 'm'")
                .hasMessageContaining(why);
    }
}
