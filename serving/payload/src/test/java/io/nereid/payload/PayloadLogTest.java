// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.observe.metrics.MetricsFormat;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.UpstreamClient.Header;
import io.nereid.transport.api.UpstreamResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PayloadLogTest {
    private static final Clock CLOCK = new Clock() {
        @Override
        public long nanos() {
            return 0;
        }

        @Override
        public long millis() {
            return 1_700_000_000_000L;
        }
    };

    private final FakeUpstream upstream = new FakeUpstream();
    private final PayloadLogs logs = new PayloadLogs(CLOCK, upstream, ObjectStore.Opener.NONE);
    private final Map<String, String> annotations = new HashMap<>(Map.of("team", "blue"));
    private double random;

    @TempDir
    Path directory;

    @AfterEach
    void close() {
        logs.close();
    }

    private PayloadLog log(String url, String mode, String specification) throws Exception {
        return log(logs, url, mode, specification);
    }

    private PayloadLog log(PayloadLogs in, String url, String mode, String specification) throws Exception {
        JsonNode tree = JsonDocuments.MAPPER.readTree(specification);
        PayloadOrigin origin = new PayloadOrigin(
                "default", "iris", "predictor", "iris-predictor-00001", "", "http://localhost:9081/", annotations);
        return in.open(PayloadSettings.read(url, mode, tree, annotations), origin, () -> random);
    }

    private static MemoryRegion bytes(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        return MemoryRegion.copyOf(bytes, 0, bytes.length);
    }

    private static PayloadLog.@Nullable Recorder begin(PayloadLog log, String... headers) {
        List<Header> all = new ArrayList<>();
        for (int i = 0; i < headers.length; i += 2) {
            all.add(new Header(headers[i], headers[i + 1]));
        }
        return log.begin(
                "http",
                "POST",
                name -> all.stream()
                        .filter(h -> h.name().equals(name))
                        .map(Header::value)
                        .findFirst()
                        .orElse(null),
                () -> all);
    }

    private static void exchange(PayloadLog log, String request, String response, int status, String... headers) {
        PayloadLog.Recorder recorder = Objects.requireNonNull(begin(log, headers));
        recorder.request("application/json", bytes(request));
        if (!response.isEmpty()) {
            recorder.response("text/plain", bytes(response));
        }
        recorder.end(status, 0);
    }

    private static void drain(PayloadLog log) throws Exception {
        log.close();
        log.drained().toCompletableFuture().get(10, TimeUnit.SECONDS);
    }

    private List<String> files() throws Exception {
        try (Stream<Path> all = Files.walk(directory)) {
            return all.filter(Files::isRegularFile)
                    .map(f -> directory.relativize(f).toString())
                    .sorted()
                    .toList();
        }
    }

    @Test
    void aRequestAndItsAnswerAreTwoEventsOfOneId() throws Exception {
        PayloadLog log = log(
                "http://sink/",
                "all",
                "{\"metadataHeaders\":[\"X-Tenant\",\"Absent\"],\"metadataAnnotations\":[\"team\"]}");
        exchange(log, "{\"instances\":[1]}", "hé", 200, "ce-id", "id 1\r\n", "x-tenant", "a", "x-tenant", "b");
        Map<String, FakeUpstream.Sent> byType = new HashMap<>();
        for (int i = 0; i < 2; i++) {
            FakeUpstream.Sent sent = upstream.next();
            byType.put(sent.header("ce-type"), sent);
        }
        FakeUpstream.Sent request = byType.get("org.kubeflow.serving.inference.request");
        FakeUpstream.Sent response = byType.get("org.kubeflow.serving.inference.response");
        assertThat(request.url()).isEqualTo("http://sink/");
        assertThat(request.text()).isEqualTo("{\"instances\":[1]}");
        assertThat(request.headers())
                .containsEntry("content-type", "application/json")
                .containsEntry("ce-specversion", "1.0")
                .containsEntry("ce-id", "id 1%0D%0A")
                .containsEntry("ce-source", "http://localhost:9081/")
                .containsEntry("ce-time", "2023-11-14T22:13:20Z")
                .containsEntry("ce-recordedtime", "2023-11-14T22:13:20Z")
                .containsEntry("ce-inferenceservicename", "iris")
                .containsEntry("ce-namespace", "default")
                .containsEntry("ce-component", "predictor")
                .containsEntry("ce-metadata", "{\"X-Tenant\":[\"a\",\"b\"]}")
                .containsEntry("ce-annotations", "{\"team\":\"blue\"}")
                .doesNotContainKeys("ce-status", "ce-endpoint");
        assertThat(response.text()).isEqualTo("hé");
        assertThat(response.headers())
                .containsEntry("content-type", "text/plain")
                .containsEntry("ce-id", "id 1%0D%0A")
                .containsEntry("ce-status", "200");
    }

    @Test
    void aRequestWithoutAnIdGetsOneAndFailuresAreLoggedToo() throws Exception {
        PayloadLog log = log("http://sink/", "response", "{}");
        exchange(log, "x", "{\"error\":\"no\"}", 503);
        FakeUpstream.Sent failed = upstream.next();
        assertThat(failed.header("ce-status")).isEqualTo("503");
        assertThat(failed.header("ce-id")).hasSize(36);
        exchange(log, "x", "", 0);
        assertThat(upstream.next().header("ce-status")).as("the client left").isEqualTo("499");
    }

    @Test
    void modesChooseWhatIsLoggedAndOnlyPostsAre() throws Exception {
        PayloadLog requests = log("http://sink/", "request", "{}");
        exchange(requests, "in", "out", 200);
        drain(requests);
        assertThat(upstream.next().text()).isEqualTo("in");
        assertThat(upstream.nothing()).isTrue();
        assertThat(requests.begin("http", "GET", name -> null, List::of)).isNull();
        PayloadLog responses = log("http://sink/", "response", "{}");
        exchange(responses, "in", "out", 200);
        drain(responses);
        assertThat(upstream.next().text()).isEqualTo("out");
        assertThat(upstream.nothing()).isTrue();
    }

    @Test
    void anAnswerInPiecesIsOneEventAndAMessageOfAStreamIsOneByItself() throws Exception {
        PayloadLog log = log("http://sink/", "response", "{}");
        PayloadLog.Recorder pieces = Objects.requireNonNull(begin(log));
        pieces.response("text/event-stream", bytes("one "));
        pieces.response("text/event-stream", bytes("two "));
        pieces.response("text/event-stream", bytes("three"));
        pieces.end(200, 0);
        assertThat(upstream.next().text()).isEqualTo("one two three");
        PayloadLog.Recorder stream = Objects.requireNonNull(log.begin("grpc", "POST", name -> null, List::of));
        stream.response("application/grpc", bytes("a"));
        stream.response("application/grpc", bytes("b"));
        FakeUpstream.Sent a = upstream.next();
        assertThat(a.text()).isEqualTo("a");
        assertThat(a.headers()).doesNotContainKeys("ce-grpcstatus", "ce-messageindex");
        stream.end(0, 14);
        FakeUpstream.Sent b = upstream.next();
        assertThat(b.text()).isEqualTo("b");
        assertThat(b.header("ce-grpcstatus")).isEqualTo("14");
        assertThat(b.header("ce-messageindex")).isEqualTo("1");
    }

    @Test
    void sampledOutRequestsAreCountedAndNotLogged() throws Exception {
        annotations.put("nereid.io/logger-sampling", "0.25");
        PayloadLog log = log("http://sink/", "request", "{}");
        random = 0.24;
        exchange(log, "in", "", 200);
        random = 0.25;
        assertThat(begin(log)).isNull();
        assertThat(upstream.next().text()).isEqualTo("in");
        assertThat(log.metrics().sampledOut.sum()).isEqualTo(1);
    }

    @Test
    void redactedValuesAreNeverSent() throws Exception {
        annotations.put("nereid.io/logger-redact", "$.instances[*].name, authorization");
        PayloadLog log = log("http://sink/", "request", "{\"metadataHeaders\":[\"Authorization\"]}");
        exchange(log, "{\"instances\":[{\"name\":\"Ann\",\"age\":3}]}", "", 200, "authorization", "Bearer s3cret");
        FakeUpstream.Sent sent = upstream.next();
        assertThat(sent.text()).isEqualTo("{\"instances\":[{\"name\":\"[redacted]\",\"age\":3}]}");
        assertThat(sent.header("ce-metadata")).isEqualTo("{\"Authorization\":[\"[redacted]\"]}");
        exchange(log, "\u0001 no json Ann", "", 200);
        FakeUpstream.Sent withheld = upstream.next();
        assertThat(withheld.body()).isEmpty();
        assertThat(withheld.header("ce-withheld")).isEqualTo("unreadable");
        assertThat(log.metrics().withheld.sum()).isEqualTo(1);
    }

    @Test
    void aFailedDeliveryIsRetriedAndARejectedOneIsNot() throws Exception {
        PayloadLog log = log("http://sink/", "request", "{}");
        upstream.answers(0, 503, 200);
        exchange(log, "a", "", 200, "ce-id", "1");
        for (int i = 0; i < 3; i++) {
            FakeUpstream.Sent sent = upstream.next();
            assertThat(sent.text()).isEqualTo("a");
            assertThat(sent.header("ce-id")).isEqualTo("1");
        }
        upstream.answers(404);
        exchange(log, "b", "", 200);
        drain(log);
        assertThat(upstream.next().text()).isEqualTo("b");
        assertThat(upstream.nothing()).isTrue();
        assertThat(log.metrics().retries.sum()).isEqualTo(2);
        assertThat(log.metrics().sent.sum()).isEqualTo(1);
        assertThat(log.metrics().lost(PayloadMetrics.Loss.REFUSED).sum()).isEqualTo(1);
    }

    @Test
    void anEventIsLostAfterItsLastRetry() throws Exception {
        annotations.put("nereid.io/logger-retries", "1");
        PayloadLog log = log("http://sink/", "request", "{}");
        upstream.answers(0, 0);
        exchange(log, "a", "", 200);
        drain(log);
        assertThat(log.metrics().lost(PayloadMetrics.Loss.UNDELIVERED).sum()).isEqualTo(1);
        assertThat(log.waitingBytes()).isZero();
    }

    @Test
    void theQueueIsBoundedInEvents() throws Exception {
        annotations.put("nereid.io/logger-queue-events", "7");
        PayloadLog log = log("http://sink/", "request", "{}");
        CompletableFuture<UpstreamResponse> stuck = new CompletableFuture<>();
        for (int i = 0; i < 7; i++) {
            upstream.answers(stuck.thenApply(a -> FakeUpstream.answer(200, List.of(), "")));
        }
        for (int i = 0; i < 10; i++) {
            exchange(log, "body" + i, "", 200);
        }
        assertThat(log.waitingEvents()).isEqualTo(7);
        assertThat(log.metrics().lost(PayloadMetrics.Loss.QUEUE_FULL).sum()).isEqualTo(3);
        assertThat(MetricsWriter.page(MetricsFormat.TEXT, logs::writeMetrics))
                .contains(
                        "# TYPE nereid_payload_events_lost_total counter\n",
                        "nereid_payload_events_lost_total{namespace=\"default\",service=\"iris\",component=\"predictor\",revision=\"iris-predictor-00001\",reason=\"queue_full\"}"
                                + " 3\n",
                        "nereid_payload_queue_events{namespace=\"default\",service=\"iris\",component=\"predictor\","
                                + "revision=\"iris-predictor-00001\"} 7\n");
        stuck.complete(FakeUpstream.answer(200, List.of(), ""));
        drain(log);
        assertThat(log.metrics().sent.sum()).isEqualTo(7);
        assertThat(log.waitingEvents()).isZero();
        assertThat(log.waitingBytes()).isZero();
        assertThat(MetricsWriter.page(MetricsFormat.TEXT, logs::writeMetrics))
                .as("a log that has ended is gone")
                .isEmpty();
        exchange(log, "late", "", 200);
        assertThat(log.metrics().lost(PayloadMetrics.Loss.CLOSED).sum()).isEqualTo(1);
    }

    @Test
    void aLogThatReplacesAnotherContinuesItsCounters() throws Exception {
        PayloadLog first = log("http://sink/", "request", "{}");
        upstream.answers(new CompletableFuture<>());
        exchange(first, "stuck", "", 200);
        upstream.next();
        upstream.answers(404);
        exchange(first, "refused", "", 200);
        upstream.next();
        PayloadLog second = log("http://other/", "request", "{}");
        first.close();
        exchange(second, "taken", "", 200);
        assertThat(upstream.next().url()).isEqualTo("http://other/");
        drain(second);
        PayloadLog third = log("http://other/", "request", "{}");
        assertThat(third.metrics()).isSameAs(first.metrics());
        assertThat(MetricsWriter.page(MetricsFormat.TEXT, logs::writeMetrics)
                        .lines()
                        .filter(l -> l.startsWith("nereid_payload_queue_events{")))
                .singleElement()
                .asString()
                .endsWith(" 1");
        assertThat(MetricsWriter.page(MetricsFormat.TEXT, logs::writeMetrics)
                        .lines()
                        .filter(l -> l.startsWith("nereid_payload_events_sent_total{")))
                .singleElement()
                .asString()
                .endsWith(" 1");
    }

    @Test
    void theQueueIsBoundedInBytesIncludingPartialResponses() throws Exception {
        annotations.put("nereid.io/logger-queue-bytes", "10");
        PayloadLog log = log("http://sink/", "all", "{}");
        PayloadLog.Recorder recorder = Objects.requireNonNull(begin(log));
        recorder.request("", bytes("12345678901"));
        recorder.response("", bytes("12345678"));
        recorder.response("", bytes("123"));
        recorder.response("", bytes("1"));
        recorder.end(200, 0);
        assertThat(log.metrics().lost(PayloadMetrics.Loss.QUEUE_BYTES).sum()).isEqualTo(2);
        assertThat(log.waitingBytes()).isZero();
        assertThat(upstream.nothing()).isTrue();
        exchange(log, "1234567890", "", 200);
        // The answer, which is empty, is an event too; events may overtake each other.
        assertThat(List.of(upstream.next().text(), upstream.next().text())).containsExactlyInAnyOrder("1234567890", "");
    }

    @Test
    void objectsAreFilesUnderServiceAndId() throws Exception {
        PayloadLog log = log(directory.toUri().toString(), "all", "{\"storage\":{\"path\":\"/logs/\"}}");
        exchange(log, "{\"instances\":[1.50]}", "plain, \"text\"", 200, "ce-id", "../../up");
        drain(log);
        assertThat(files())
                .containsExactly(
                        "default/iris/predictor/logs/%2E.%2F..%2Fup-request.json",
                        "default/iris/predictor/logs/%2E.%2F..%2Fup-response.json");
        String request = Files.readString(directory.resolve(files().get(0)));
        assertThat(request)
                .startsWith(
                        "{\"specversion\":\"1.0\",\"id\":\"../../up\",\"type\":\"org.kubeflow.serving.inference.request\"")
                .endsWith("\"datacontenttype\":\"application/json\",\"data\":{\"instances\":[1.50]}}");
        assertThat(Files.readString(directory.resolve(files().get(1))))
                .endsWith("\"status\":\"200\",\"datacontenttype\":\"text/plain\",\"data\":\"plain, \\\"text\\\"\"}");
    }

    @Test
    void aBatchBySizeWaitsForEnoughAndTheRestGoesAtTheEnd() throws Exception {
        PayloadLog log = log(
                directory.toUri().toString(),
                "request",
                "{\"batchSize\":3,\"storage\":{\"parameters\":{\"format\":\"csv\"}}}");
        for (int i = 0; i < 2; i++) {
            exchange(log, "a,\"" + i, "", 200, "ce-id", "id" + i);
        }
        assertThat(files()).isEmpty();
        for (int i = 2; i < 4; i++) {
            exchange(log, "b", "", 200, "ce-id", "id" + i);
        }
        drain(log);
        assertThat(files())
                .containsExactly("default/iris/predictor/id0-request.csv", "default/iris/predictor/id3-request.csv");
        assertThat(Files.readString(directory.resolve(files().get(0)))).contains("data_base64\r\nid0,");
        List<String> lines = Files.readAllLines(directory.resolve(files().get(0)));
        assertThat(lines).hasSize(4);
        assertThat(lines.get(0)).startsWith("id,type,source,time,").endsWith("contenttype,data,data_base64");
        assertThat(lines.get(1)).startsWith("id0,org.kubeflow").endsWith(",application/json,\"a,\"\"0\",");
    }

    @Test
    void aTimedBatchIsSentAfterItsInterval() throws Exception {
        PayloadLog log = log(
                directory.toUri().toString(),
                "all",
                "{\"batchSize\":100,\"batchInterval\":1,\"marshallerUrl\":\"http://marshal/\"}");
        upstream.answers(CompletableFuture.completedFuture(
                FakeUpstream.answer(200, List.of(new Header("x-log-marshal-extension", ".avro")), "MARSHALLED")));
        exchange(log, "1", "2", 200, "ce-id", "x");
        FakeUpstream.Sent sent = upstream.next();
        assertThat(sent.url()).isEqualTo("http://marshal/");
        assertThat(JsonDocuments.MAPPER.readTree(sent.body())).hasSize(1);
        upstream.next();
        drain(log);
        assertThat(files())
                .containsExactly("default/iris/predictor/x-request.avro", "default/iris/predictor/x-response.json");
        assertThat(Files.readString(directory.resolve(files().get(0)))).isEqualTo("MARSHALLED");
    }

    @Test
    void aBatchThatCannotBecomeFullIsSentWhenTheBytesAreUsedUp() throws Exception {
        annotations.put("nereid.io/logger-queue-bytes", "10");
        PayloadLog log = log(directory.toUri().toString(), "request", "{\"batchSize\":100}");
        exchange(log, "12345678", "", 200, "ce-id", "a");
        exchange(log, "12345678", "", 200, "ce-id", "b");
        drain(log);
        assertThat(files()).containsExactly("default/iris/predictor/a-request.json");
        assertThat(log.metrics().lost(PayloadMetrics.Loss.QUEUE_BYTES).sum()).isEqualTo(1);
    }

    @Test
    void aStoreIsOpenedForItsServiceAndAFailedWriteIsRetried() throws Exception {
        Map<String, byte[]> objects = new ConcurrentHashMap<>();
        List<String> opened = new ArrayList<>();
        AtomicInteger tries = new AtomicInteger();
        try (PayloadLogs stores = new PayloadLogs(CLOCK, upstream, (url, storage, origin) -> {
            opened.add(url + " " + storage.key() + " " + origin.namespace());
            return (key, bytes) -> {
                if (tries.incrementAndGet() == 1) {
                    throw ServingException.of(ErrorCode.UNAVAILABLE, "busy");
                }
                objects.put(key, bytes);
            };
        })) {
            PayloadLog log = log(stores, "s3://bucket/logs", "request", "{\"storage\":{\"key\":\"mine\"}}");
            exchange(log, "1", "", 200, "ce-id", "a");
            drain(log);
            assertThat(log.metrics().retries.sum()).isEqualTo(1);
            assertThat(log.metrics().sent.sum()).isEqualTo(1);
        }
        assertThat(opened).containsExactly("s3://bucket/logs mine default");
        assertThat(objects).containsOnlyKeys("default/iris/predictor/a-request.json");
    }

    @Test
    void aForbiddenWriteIsNotRetried() throws Exception {
        for (ErrorCode code : List.of(
                ErrorCode.PERMISSION_DENIED,
                ErrorCode.UNAUTHENTICATED,
                ErrorCode.NOT_FOUND,
                ErrorCode.INVALID_ARGUMENT)) {
            try (PayloadLogs stores = new PayloadLogs(CLOCK, upstream, (url, storage, origin) -> (key, bytes) -> {
                throw ServingException.of(code, "no");
            })) {
                PayloadLog log = log(stores, "gs://bucket", "request", "{}");
                exchange(log, "1", "", 200, "ce-id", "a");
                drain(log);
                assertThat(log.metrics().lost(PayloadMetrics.Loss.REFUSED).sum())
                        .as("%s", code)
                        .isEqualTo(1);
                assertThat(log.metrics().retries.sum()).isZero();
            }
        }
    }

    @Test
    void aStoreThatHangsDelaysNeitherRequestsNorOtherLogs() throws Exception {
        CountDownLatch release = new CountDownLatch(1);
        try (PayloadLogs stores = new PayloadLogs(CLOCK, upstream, (url, storage, origin) -> (key, bytes) -> {
            try {
                release.await();
            } catch (InterruptedException e) {
                throw new java.io.IOException(e);
            }
        })) {
            annotations.put("nereid.io/logger-queue-events", "7");
            PayloadLog hanging = log(stores, "s3://hangs", "request", "{}");
            for (int i = 0; i < 20; i++) {
                exchange(hanging, "1", "", 200);
            }
            assertThat(hanging.waitingEvents()).isEqualTo(7);
            assertThat(hanging.metrics().lost(PayloadMetrics.Loss.QUEUE_FULL).sum())
                    .isEqualTo(13);
            PayloadLog other = log(stores, directory.toUri().toString(), "request", "{}");
            exchange(other, "1", "", 200, "ce-id", "x");
            drain(other);
            assertThat(files()).containsExactly("default/iris/predictor/x-request.json");
            release.countDown();
            drain(hanging);
            // Both are of one revision, whose metrics they share.
            assertThat(hanging.metrics().sent.sum()).isEqualTo(7 + 1);
        }
    }

    @Test
    void anUnsupportedStoreIsRejectedWithARemedy() {
        for (String url : List.of("s3://bucket/x", "gs://bucket", "abfs://c@a/x")) {
            assertThat(refusal(url)).contains("'" + url + "'").contains("file:///");
        }
        assertThat(refusal("kafka://x")).contains("kafka://x").contains("expected");
        assertThat(refusal("file://host/x")).contains("file:///absolute/path");
    }

    private String refusal(String url) {
        try {
            log(url, "", "{}");
        } catch (ServingException e) {
            return e.describe();
        } catch (Exception e) {
            throw new AssertionError(e);
        }
        throw new AssertionError("taken");
    }
}
