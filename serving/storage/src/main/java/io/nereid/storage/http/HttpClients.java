// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.http;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.Clock;
import io.nereid.base.Threads;
import io.nereid.storage.request.StorageOptions;
import java.net.ProxySelector;
import java.net.http.HttpClient;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;

/**
 * The HTTP clients of all fetches, one for each combination of TLS settings and connect timeout, and the timer that
 * ends transfers in which no data arrives: the JDK's client has a timeout for the start of a response only.
 * Thread-safe.
 */
public final class HttpClients implements AutoCloseable {
    private static final int CLIENTS = 16;

    public final StorageOptions options;
    final Clock clock;
    private final @Nullable ProxySelector proxies;
    private final ExecutorService threads;
    private final ScheduledThreadPoolExecutor watch;
    private final Set<HttpBody> open = ConcurrentHashMap.newKeySet();

    @GuardedBy("clients") private final Map<Kind, HttpClient> clients = new LinkedHashMap<>(8, 0.75f, true);

    public HttpClients(StorageOptions options, Clock clock) {
        this.options = options;
        this.clock = clock;
        this.proxies = EnvironmentProxySelector.of(options.environment());
        this.threads = Threads.pool("storage-http", 4);
        this.watch = Threads.timer("storage-watch");
        long every = Math.max(10, Math.min(1000, options.readTimeout().toMillis() / 4));
        var unused = watch.scheduleWithFixedDelay(this::sweep, every, every, TimeUnit.MILLISECONDS);
    }

    /** The settings that a client's connections depend on. */
    private record Kind(TlsSettings tls, Duration connectTimeout) {}

    public HttpClient client(TlsSettings tls, Duration connectTimeout) {
        Kind kind = new Kind(tls, connectTimeout);
        synchronized (clients) {
            HttpClient known = clients.get(kind);
            if (known != null) {
                return known;
            }
            HttpClient.Builder builder = HttpClient.newBuilder()
                    .version(HttpClient.Version.HTTP_1_1)
                    .followRedirects(HttpClient.Redirect.NEVER)
                    .connectTimeout(connectTimeout)
                    .executor(threads);
            if (proxies != null) {
                builder.proxy(proxies);
            }
            SSLContext context = tls.context();
            if (context != null) {
                builder.sslContext(context);
            }
            HttpClient client = builder.build();
            clients.put(kind, client);
            if (clients.size() > CLIENTS) {
                clients.remove(clients.keySet().iterator().next());
            }
            return client;
        }
    }

    void watch(HttpBody body) {
        open.add(body);
    }

    void forget(HttpBody body) {
        open.remove(body);
    }

    private void sweep() {
        long now = clock.nanos();
        for (HttpBody body : open) {
            body.endIfIdle(now);
        }
    }

    @Override
    public void close() {
        watch.shutdownNow();
        open.forEach(HttpBody::close);
        threads.shutdown();
        synchronized (clients) {
            clients.clear();
        }
    }
}
