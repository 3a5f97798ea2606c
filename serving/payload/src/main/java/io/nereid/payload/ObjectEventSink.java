// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.transport.api.ForwardOptions;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.api.UpstreamClient.Header;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Writes batches of events as objects of a store: the requests of a batch in one object, the responses in another.
 * Thread-safe.
 */
final class ObjectEventSink implements EventSink {
    private static final ForwardOptions TERMS = new ForwardOptions(Duration.ofMinutes(1), 256L << 20, List.of());
    private static final int LONGEST_ID = 180;

    private final ObjectStore store;
    private final BatchFormat format;
    private final boolean alone;
    private final String folder;
    private final @Nullable String marshaller;
    private final UpstreamClient upstream;
    private final Executor pool;

    ObjectEventSink(
            ObjectStore store, PayloadSettings settings, PayloadOrigin origin, UpstreamClient upstream, Executor pool) {
        this.store = store;
        this.format = settings.format();
        this.alone = settings.strategy() == PayloadSettings.Strategy.IMMEDIATE;
        this.folder = String.join(
                "/",
                Stream.of(
                                origin.namespace(),
                                origin.service(),
                                origin.component(),
                                settings.storage().path())
                        .flatMap(s -> Stream.of(s.split("/", -1)))
                        .filter(s -> !s.isEmpty())
                        .map(ObjectEventSink::segment)
                        .toList());
        this.marshaller = settings.marshallerUrl();
        this.upstream = upstream;
        this.pool = pool;
    }

    @Override
    public boolean batches() {
        return true;
    }

    @Override
    public CompletionStage<Void> send(List<RedactedEvent> events) {
        CompletionStage<Void> requests =
                write(events.stream().filter(e -> e.event().request()).toList());
        return requests.thenCompose(
                v -> write(events.stream().filter(e -> !e.event().request()).toList()));
    }

    private CompletionStage<Void> write(List<RedactedEvent> events) {
        if (events.isEmpty()) {
            return CompletableFuture.completedFuture(null);
        }
        // A marshaller converts the batch to its own format; without one the events are written in the configured
        // format.
        String url = marshaller;
        if (url == null) {
            return CompletableFuture.runAsync(
                    () -> put(events.get(0), format.extension(), format.write(events, alone)), pool);
        }
        List<Header> headers = List.of(new Header("content-type", "application/json"));
        return upstream.send("POST", url, headers, BatchFormat.JSON.write(events, false), TERMS)
                .thenAcceptAsync(
                        answer -> {
                            byte[] bytes = new byte[answer.body().size()];
                            answer.body().getBytes(0, bytes, 0, bytes.length);
                            answer.body().release();
                            HttpEventSink.check(url, answer.status());
                            put(events.get(0), extension(answer.headers()), bytes);
                        },
                        pool);
    }

    private String extension(List<Header> headers) {
        for (Header header : headers) {
            if (header.name().equalsIgnoreCase("x-log-marshal-extension")) {
                String given = header.value().startsWith(".") ? header.value().substring(1) : header.value();
                if (given.matches("[A-Za-z0-9][A-Za-z0-9.]{0,15}")) {
                    return given;
                }
            }
        }
        return format.extension();
    }

    private void put(RedactedEvent first, String extension, byte[] bytes) {
        PayloadEvent event = first.event();
        String name = segment(event.id()) + "-" + event.kind() + (event.index() == 0 ? "" : "-" + event.index()) + "."
                + extension;
        String key = folder + "/" + name;
        try {
            store.put(key, bytes);
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.UNAVAILABLE, "the object " + key + " could not be written: " + e.getMessage(), e);
        }
    }

    /**
     * Encodes a text as one segment of a key. Clients choose the ids, so the result never contains a slash and never
     * starts with a dot: an id cannot lead to another directory.
     */
    static String segment(String text) {
        StringBuilder safe = new StringBuilder();
        for (byte b : text.getBytes(java.nio.charset.StandardCharsets.UTF_8)) {
            char c = (char) (b & 0xff);
            boolean plain = c >= 'a' && c <= 'z'
                    || c >= 'A' && c <= 'Z'
                    || c >= '0' && c <= '9'
                    || c == '-'
                    || c == '_'
                    || c == '.' && !safe.isEmpty();
            safe.append(plain ? String.valueOf(c) : String.format(Locale.ROOT, "%%%02X", (int) c));
        }
        return safe.length() > LONGEST_ID ? safe.substring(0, LONGEST_ID) : safe.toString();
    }
}
