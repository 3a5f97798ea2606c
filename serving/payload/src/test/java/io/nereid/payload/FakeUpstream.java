// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.ForwardOptions;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.api.UpstreamResponse;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Records requests and responds with the configured statuses, 200 by default. Thread-safe. */
final class FakeUpstream implements UpstreamClient {
    private final BlockingQueue<Sent> sent = new LinkedBlockingQueue<>();
    private final BlockingQueue<CompletionStage<UpstreamResponse>> answers = new LinkedBlockingQueue<>();

    record Sent(String url, Map<String, String> headers, byte[] body) {
        String text() {
            return new String(body, StandardCharsets.UTF_8);
        }

        String header(String name) {
            return headers.getOrDefault(name, "-");
        }
    }

    /** The next answers have these statuses; 0 for a broken connection. */
    void answers(int... statuses) {
        for (int status : statuses) {
            answers.add(
                    status == 0
                            ? CompletableFuture.failedFuture(
                                    ServingException.of(ErrorCode.UNAVAILABLE, "no connection"))
                            : CompletableFuture.completedFuture(answer(status, List.of(), "")));
        }
    }

    /** The next answer is this one, whenever it comes. */
    void answers(CompletionStage<UpstreamResponse> next) {
        answers.add(next);
    }

    static UpstreamResponse answer(int status, List<Header> headers, String body) {
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        return new UpstreamResponse(status, headers, MemoryRegion.copyOf(bytes, 0, bytes.length));
    }

    Sent next() throws InterruptedException {
        Sent next = sent.poll(10, TimeUnit.SECONDS);
        assertThat(next).as("nothing was sent").isNotNull();
        return java.util.Objects.requireNonNull(next);
    }

    boolean nothing() {
        return sent.isEmpty();
    }

    @Override
    public CompletionStage<UpstreamResponse> send(
            String method, String url, List<Header> headers, byte[] body, ForwardOptions terms) {
        assertThat(method).isEqualTo("POST");
        CompletionStage<UpstreamResponse> answer = answers.poll();
        Map<String, String> all = new TreeMap<>();
        headers.forEach(h -> all.put(h.name(), h.value()));
        sent.add(new Sent(url, all, body));
        return answer == null ? CompletableFuture.completedFuture(answer(200, List.of(), "")) : answer;
    }

    @Override
    public void forward(HttpExchange exchange, Address address, String path, ForwardOptions terms) {
        throw new AssertionError("nothing is forwarded");
    }

    @Override
    public GrpcMethod.GrpcListener forward(GrpcCall call, Address address, ForwardOptions terms) {
        throw new AssertionError("nothing is forwarded");
    }

    @Override
    public void close() {}
}
