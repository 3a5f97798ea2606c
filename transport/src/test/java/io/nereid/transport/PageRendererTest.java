// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.tensor.MemoryRegion;
import io.nereid.testkit.InMemoryExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.PageRenderer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import org.junit.jupiter.api.Test;

class PageRendererTest {
    private final ArrayDeque<Runnable> queued = new ArrayDeque<>();
    private final List<String> rendered = new ArrayList<>();
    private final PageRenderer<String> pages = new PageRenderer<>(queued::add, this::page);

    private String page(String format) {
        rendered.add(format);
        if (format.equals("bad")) {
            throw new IllegalStateException("no page");
        }
        return format + rendered.size();
    }

    private static final class Exchange extends InMemoryExchange {
        Exchange() {
            super("GET", "/metrics", List.of(), MemoryRegion.empty());
        }
    }

    private Exchange ask(String format) {
        Exchange exchange = new Exchange();
        pages.reply(exchange, format, text -> HttpReply.text(200, "text/plain", text));
        return exchange;
    }

    @Test
    void nothingIsRenderedOnTheCallersThread() {
        Exchange exchange = ask("a");
        assertThat(rendered).isEmpty();
        assertThat(exchange.replied()).isNull();
        queued.remove().run();
        assertThat(exchange.text()).isEqualTo("a1");
    }

    @Test
    void requestsThatWaitShareOneRenderingForEachFormat() {
        List<Exchange> some = List.of(ask("a"), ask("b"), ask("a"), ask("a"));
        assertThat(queued).hasSize(1);
        queued.remove().run();
        assertThat(rendered).containsExactly("a", "b");
        assertThat(some).extracting(Exchange::text).containsExactly("a1", "b2", "a1", "a1");
        assertThat(queued).isEmpty();
        Exchange later = ask("a");
        queued.remove().run();
        assertThat(later.text()).isEqualTo("a3");
    }

    @Test
    void aPageThatFailsIsReportedAndTheOthersFollow() {
        Exchange bad = ask("bad");
        Exchange good = ask("a");
        queued.remove().run();
        assertThat(bad.status()).isEqualTo(500);
        assertThat(good.text()).isEqualTo("a2");
    }

    @Test
    void aStoppedExecutorMakesTheRequestUnavailable() {
        PageRenderer<String> stopped = new PageRenderer<>(
                task -> {
                    throw new RejectedExecutionException();
                },
                this::page);
        Exchange exchange = new Exchange();
        stopped.reply(exchange, "a", text -> HttpReply.text(200, "text/plain", text));
        assertThat(exchange.status()).isEqualTo(503);
    }
}
