// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain.request;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.json.JsonValues;
import io.nereid.testkit.InMemoryExchange;
import io.nereid.transport.api.HttpReply;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** An exchange without a socket, on whose response a test can wait. Confined to a test. */
public final class Exchange extends InMemoryExchange {
    private final CountDownLatch done = new CountDownLatch(1);

    public Exchange(String body, String... parameters) {
        super("POST", "/", List.of(parameters), region(body));
        headers.put("content-type", "application/json");
    }

    /** Whether the response arrives in time. */
    public boolean await(Duration time) throws InterruptedException {
        return done.await(time.toNanos(), TimeUnit.NANOSECONDS);
    }

    public boolean answered() {
        return replied() != null;
    }

    /** The response as a tree. */
    public Map<?, ?> tree() {
        assertThat(status()).as(text()).isEqualTo(200);
        return (Map<?, ?>) JsonValues.readDoubles(text().getBytes(StandardCharsets.UTF_8));
    }

    /** The only, or the first, explanation. */
    public Map<?, ?> first() {
        return (Map<?, ?>) ((List<?>) tree().get("explanations")).get(0);
    }

    @Override
    public void reply(HttpReply answer) {
        super.reply(answer);
        done.countDown();
    }
}
