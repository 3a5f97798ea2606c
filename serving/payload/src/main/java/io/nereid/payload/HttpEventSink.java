// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.transport.api.ForwardOptions;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.api.UpstreamClient.Header;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletionStage;

/** Sends each event as a CloudEvent in HTTP's binary mode. Thread-safe. */
final class HttpEventSink implements EventSink {
    private static final ForwardOptions TERMS = new ForwardOptions(Duration.ofSeconds(30), 1 << 20, List.of());

    private final UpstreamClient upstream;
    private final String url;

    HttpEventSink(UpstreamClient upstream, String url) {
        this.upstream = upstream;
        this.url = url;
    }

    @Override
    public boolean batches() {
        return false;
    }

    @Override
    public CompletionStage<Void> send(List<RedactedEvent> events) {
        RedactedEvent event = events.get(0);
        List<Header> headers = new ArrayList<>();
        if (!event.event().contentType().isEmpty()) {
            headers.add(new Header("content-type", printable(event.event().contentType())));
        }
        headers.add(new Header("ce-specversion", "1.0"));
        event.attributes().forEach((name, value) -> headers.add(new Header("ce-" + name, printable(value))));
        return upstream.send("POST", url, headers, event.data(), TERMS).thenApply(answer -> {
            answer.body().release();
            check(url, answer.status());
            return null;
        });
    }

    /**
     * Checks the status of a receiver.
     *
     * @throws ServingException UNAVAILABLE for a status that is worth a retry, INVALID_ARGUMENT for any other error
     */
    static void check(String url, int status) {
        if (status / 100 != 2) {
            boolean again = status >= 500 || status == 408 || status == 425 || status == 429;
            throw ServingException.of(
                    again ? ErrorCode.UNAVAILABLE : ErrorCode.INVALID_ARGUMENT,
                    url + " answered with status " + status);
        }
    }

    /**
     * Encodes a header's value: percent-encodes everything but printable ASCII, as CloudEvents' HTTP binding requires.
     */
    static String printable(String value) {
        int plain = 0;
        while (plain < value.length() && plain(value.charAt(plain))) {
            plain++;
        }
        if (plain == value.length()) {
            return value;
        }
        StringBuilder encoded = new StringBuilder(value.length() + 16);
        for (byte b : value.getBytes(java.nio.charset.StandardCharsets.UTF_8)) {
            char c = (char) (b & 0xff);
            if (plain(c)) {
                encoded.append(c);
            } else {
                encoded.append(String.format(Locale.ROOT, "%%%02X", (int) c));
            }
        }
        return encoded.toString();
    }

    private static boolean plain(char c) {
        return c >= ' ' && c <= '~' && c != '%';
    }
}
