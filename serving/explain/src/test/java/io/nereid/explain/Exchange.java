// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.endpoint.HttpExchange;
import io.nereid.endpoint.HttpReply;
import io.nereid.endpoint.HttpStream;
import io.nereid.tensor.MemoryRegion;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** An exchange without a socket; keeps its one reply. Confined to a test. */
final class Exchange implements HttpExchange {
    private final Map<String, String> headers;
    private final List<String> parameters;
    private final MemoryRegion body;
    private volatile @Nullable HttpReply reply;
    private volatile @Nullable Runnable cancel;
    private final CountDownLatch done = new CountDownLatch(1);

    Exchange(String body, String... parameters) {
        this.headers = Map.of("content-type", "application/json");
        this.parameters = List.of(parameters);
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        this.body = MemoryRegion.copyOf(bytes, 0, bytes.length);
    }

    /** Whether there is an answer in time. */
    boolean await(Duration time) throws InterruptedException {
        return done.await(time.toNanos(), TimeUnit.NANOSECONDS);
    }

    boolean answered() {
        return reply != null;
    }

    /** The client goes away. */
    void leave() {
        if (cancel == null) {
            throw new AssertionError("nothing to do");
        }
        cancel.run();
    }

    /** The answer as a tree. */
    Map<?, ?> tree() {
        assertThat(status()).as(text()).isEqualTo(200);
        return (Map<?, ?>) JsonTree.read(text().getBytes(StandardCharsets.UTF_8));
    }

    /** The only, or the first, explanation. */
    Map<?, ?> first() {
        return (Map<?, ?>) ((List<?>) tree().get("explanations")).get(0);
    }

    int status() {
        return answer().status();
    }

    String text() {
        return new String(answer().content().text(), 0, answer().content().textLength(), StandardCharsets.UTF_8);
    }

    private HttpReply answer() {
        if (reply == null) {
            throw new AssertionError("no reply");
        }
        return reply;
    }

    @Override
    public String method() {
        return "POST";
    }

    @Override
    public String path() {
        return "/";
    }

    @Override
    public String pathParameter(int index) {
        return parameters.get(index);
    }

    @Override
    public @Nullable String queryParameter(String name) {
        return null;
    }

    @Override
    public @Nullable String header(String lowerCaseName) {
        return headers.get(lowerCaseName);
    }

    @Override
    public MemoryRegion body() {
        return body;
    }

    @Override
    public long arrivedNanos() {
        return 0;
    }

    @Override
    public void onCancel(Runnable action) {
        cancel = action;
    }

    @Override
    public boolean inEventLoop() {
        return true;
    }

    @Override
    public HttpStream stream(HttpReply head) {
        throw new AssertionError("no replies in pieces here");
    }

    @Override
    public void headers(BiConsumer<String, String> each) {}

    @Override
    public void reply(HttpReply answer) {
        if (reply != null) {
            throw new AssertionError("two replies");
        }
        reply = answer;
        done.countDown();
        body.release();
    }
}
