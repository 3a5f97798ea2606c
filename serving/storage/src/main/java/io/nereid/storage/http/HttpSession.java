// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.http;

import io.nereid.base.ServingException;
import io.nereid.storage.request.StorageAccess;
import io.nereid.storage.request.StorageJson;
import io.nereid.storage.spi.CancellationToken;
import io.nereid.storage.spi.RetryPolicy;
import io.nereid.storage.spi.StorageFailures;
import io.nereid.storage.spi.StorageSettings;
import io.nereid.storage.spi.StorageUri;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpHeaders;
import java.time.Duration;
import java.util.Locale;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * HTTP for one fetch, with its TLS settings, timeouts, retries, redirects and cancellation. Redirects are followed
 * here, not by the JDK's client, so that credentials are not sent to another origin and TLS is never downgraded.
 * Thread-safe.
 */
public final class HttpSession {
    private static final int ANSWER = 64 << 20;
    private static final int REDIRECTS = 8;
    /** Uploads get additional time, as over a connection of 2 Mbit/s. */
    private static final int SLOWEST_BYTES_PER_MILLI = 256;

    private final HttpClients http;
    private final TlsSettings tls;
    private final StorageAccess.Connections access;
    private final StorageSettings settings;
    private final Duration connectTimeout;
    private final Duration readTimeout;
    private final int attempts;
    private volatile CancellationToken cancel;

    public HttpSession(
            HttpClients http,
            TlsSettings tls,
            StorageSettings settings,
            RetryPolicy retryPolicy,
            CancellationToken cancel,
            StorageAccess.Connections access) {
        this.http = http;
        this.tls = tls;
        this.access = access;
        this.settings = settings;
        this.connectTimeout = retryPolicy.connect();
        this.readTimeout = retryPolicy.read();
        this.attempts = retryPolicy.attempts();
        this.cancel = cancel;
    }

    /** A complete small response. Immutable. */
    public record Answer(int status, HttpHeaders headers, byte[] body) {
        public boolean ok() {
            return status / 100 == 2;
        }

        public String header(String name) {
            return headers.firstValue(name).orElse("");
        }

        public String text() {
            return new String(body, java.nio.charset.StandardCharsets.UTF_8);
        }
    }

    /**
     * A session of the same fetch for the services of this machine that give credentials: without retries, with short
     * timeouts.
     */
    public HttpSession brief(Duration timeout) {
        return new HttpSession(
                http,
                TlsSettings.MACHINE,
                settings,
                new RetryPolicy(timeout, timeout, 1),
                cancel,
                access.withMachineServices(http.options.environment()));
    }

    /** Whether the operator has named exactly this host, for targets that get a password. */
    public boolean names(URI target) {
        return access.names(target);
    }

    public CancellationToken cancel() {
        return cancel;
    }

    /** Replaces the cancellation token: a shared download must outlive the fetch that started it. */
    public void follow(CancellationToken other) {
        cancel = other;
    }

    public int attempts() {
        return attempts;
    }

    /**
     * Sends a request, with retries after failures that may be temporary. {@code call} makes the request anew for each
     * attempt, since signatures expire.
     */
    public Answer send(String what, Supplier<HttpCall> call) {
        for (int attempt = 1; ; attempt++) {
            cancel.check();
            long wait;
            try (HttpBody body = open(call.get())) {
                Answer answer = new Answer(body.status(), body.headers(), body.all(ANSWER));
                if (!StorageFailures.isRetryable(answer.status())) {
                    return answer;
                }
                if (attempt >= attempts) {
                    throw failed(what, answer.status(), reason(answer), null);
                }
                wait = Math.max(RetryPolicy.pauseMillis(attempt), retryAfterMillis(answer.header("Retry-After")));
            } catch (IOException e) {
                cancel.check();
                if (attempt >= attempts) {
                    throw unreachable(what, e);
                }
                wait = RetryPolicy.pauseMillis(attempt);
            }
            cancel.pause(wait);
        }
    }

    /** As {@link #send}, but throws for every response that is not a success. */
    public Answer expect(String what, Supplier<HttpCall> call) {
        Answer answer = send(what, call);
        if (!answer.ok()) {
            throw failed(what, answer);
        }
        return answer;
    }

    /** Sends a request once, follows redirects, and returns the streamed response. */
    public HttpBody open(HttpCall first) throws IOException {
        HttpCall call = first;
        for (int hop = 0; ; hop++) {
            HttpConnection.Response response = exchange(call);
            HttpBody body = new HttpBody(
                            http, cancel, response.status(), response.headers(), response.body(), readTimeout.toNanos())
                    .watched();
            String location = body.header("Location");
            boolean redirect = body.status() == 301
                    || body.status() == 302
                    || body.status() == 303
                    || body.status() == 307
                    || body.status() == 308;
            if (!redirect || location.isEmpty() || call.sends()) {
                return body;
            }
            body.close();
            if (hop >= REDIRECTS) {
                throw new IOException("more than " + REDIRECTS + " redirects");
            }
            call = call.redirected(target(call.uri(), location));
        }
    }

    private static URI target(URI from, String location) throws IOException {
        try {
            URI target = from.resolve(new URI(location.replace(" ", "%20")));
            String scheme = target.getScheme() == null ? "" : target.getScheme().toLowerCase(Locale.ROOT);
            boolean weaker = from.getScheme().equalsIgnoreCase("https") && scheme.equals("http");
            if (target.getHost() == null || weaker || !(scheme.equals("http") || scheme.equals("https"))) {
                throw new IOException("a redirect leads to " + StorageUri.shown(target.toString()));
            }
            return target;
        } catch (java.net.URISyntaxException e) {
            throw new IOException("a redirect has an invalid location", e);
        }
    }

    private HttpConnection.Response exchange(HttpCall call) throws IOException {
        return http.exchange(
                call,
                tls,
                access,
                connectTimeout,
                readTimeout.plusMillis(call.body().length / SLOWEST_BYTES_PER_MILLI),
                cancel);
    }

    public static long retryAfterMillis(String header) {
        try {
            return header.isEmpty() ? 0 : Math.max(0, Math.min(30, Long.parseLong(header.trim()))) * 1000;
        } catch (NumberFormatException e) {
            return 0;
        }
    }

    /** Converts a response that is not a success to an exception. */
    public ServingException failed(String what, Answer answer) {
        return failed(what, answer.status(), reason(answer), null);
    }

    public ServingException failed(String what, int status, String reason, @Nullable String remedy) {
        return failures().ofStatus(what, status, reason, remedy);
    }

    /** The exception for an object that the store rejected. */
    public ServingException rejected(String what, Answer answer) {
        return failures().ofWriting(what, answer.status(), reason(answer));
    }

    public ServingException unreachable(String what, IOException e) {
        return failures().unreachable(what, e);
    }

    private StorageFailures failures() {
        return new StorageFailures(settings, attempts);
    }

    /** The error code or message in a store's response, or an empty text. Shows nothing else of the body. */
    public static String reason(Answer answer) {
        String type = answer.header("Content-Type").toLowerCase(Locale.ROOT);
        String code = "";
        if (type.contains("xml")) {
            code = XmlParser.code(answer.body());
        } else if (type.contains("json")) {
            try {
                var node = StorageJson.read(answer.text(), "answer");
                for (String pointer : new String[] {
                    "/error/message", "/RemoteException/message", "/errors/0/message", "/error_description", "/error"
                }) {
                    if (node.at(pointer).isTextual()) {
                        code = node.at(pointer).asText();
                        break;
                    }
                }
            } catch (ServingException e) {
                code = "";
            }
        }
        String line = code.lines().findFirst().orElse("");
        return line.length() > 200 ? line.substring(0, 200) : line;
    }
}
