// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Function;

/**
 * Renders a page that takes long, such as metrics, on an executor and not on the event loop that received the request.
 * Requests that arrive while the page is being rendered, or waits for that, share the next rendering: however many
 * there are, one thread renders, and each format once at a time. Thread-safe.
 *
 * <pre>{@code
 * PageRenderer<MetricsFormat> pages = new PageRenderer<>(codecPool, this::page);
 * HttpRoute.get("/metrics", x -> pages.reply(x, format(x), text -> HttpReply.text(200, TYPE, text)));
 * }</pre>
 *
 * @param <F> the format of the page
 */
public final class PageRenderer<F> {
    private record Waiting<F>(HttpExchange exchange, F format, Function<byte[], HttpReply> reply) {}

    private final Executor executor;
    private final Function<F, String> page;
    private final Object lock = new Object();

    // guarded by lock
    private List<Waiting<F>> waiting = new ArrayList<>();
    private boolean running;

    /** @param executor runs the rendering; owned by the caller */
    public PageRenderer(Executor executor, Function<F, String> page) {
        this.executor = executor;
        this.page = page;
    }

    /** Replies to an exchange, later; {@code reply} makes the response of the text in UTF-8. */
    public void reply(HttpExchange exchange, F format, Function<byte[], HttpReply> reply) {
        synchronized (lock) {
            waiting.add(new Waiting<>(exchange, format, reply));
            if (running) {
                return;
            }
            running = true;
        }
        begin();
    }

    private void begin() {
        try {
            executor.execute(this::render);
        } catch (RejectedExecutionException e) {
            ServingException stopping =
                    ServingException.of(ErrorCode.UNAVAILABLE, "the server is shutting down", "retry later");
            take().forEach(w -> w.exchange().fail(stopping));
        }
    }

    /** Takes those that wait; none may follow without a new run. */
    private List<Waiting<F>> take() {
        synchronized (lock) {
            List<Waiting<F>> taken = waiting;
            waiting = new ArrayList<>();
            running = false;
            return taken;
        }
    }

    private void render() {
        List<Waiting<F>> taken;
        synchronized (lock) {
            taken = waiting;
            waiting = new ArrayList<>();
        }
        List<F> formats = taken.stream().map(Waiting::format).distinct().toList();
        for (F format : formats) {
            List<Waiting<F>> same =
                    taken.stream().filter(w -> w.format().equals(format)).toList();
            try {
                byte[] text = page.apply(format).getBytes(StandardCharsets.UTF_8);
                same.forEach(w -> w.exchange().reply(w.reply().apply(text)));
            } catch (RuntimeException | OutOfMemoryError e) {
                same.forEach(w -> w.exchange().fail(ServingException.from(e)));
            }
        }
        synchronized (lock) {
            running = !waiting.isEmpty();
            if (!running) {
                return;
            }
        }
        begin();
    }
}
