// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.http;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.storage.request.StorageAccess;
import io.nereid.storage.request.StorageOptions;
import io.nereid.storage.spi.CancellationToken;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.net.ProxySelector;
import java.net.Socket;
import java.net.URI;
import java.net.UnknownHostException;
import java.net.http.HttpTimeoutException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.SSLSocketFactory;
import org.jspecify.annotations.Nullable;

/**
 * The connections of all fetches, and the timer that ends exchanges and transfers in which no data arrives.
 *
 * <p>The JDK's HTTP client resolves host names itself, so it may connect to another address than the one that was
 * checked. Here the connection is opened to the checked address; the certificate is still verified against the host's
 * name. Thread-safe. Exchanges block the calling thread.
 */
public final class HttpClients implements AutoCloseable {
    private static final int CONTEXTS = 16;
    private static final int IDLE_CONNECTIONS = 8;
    private static final long IDLE_NANOS = TimeUnit.SECONDS.toNanos(20);

    public final StorageOptions options;
    final Clock clock;
    private final @Nullable ProxySelector proxies;
    private final ScheduledThreadPoolExecutor watch;
    private final Set<HttpBody> open = ConcurrentHashMap.newKeySet();

    @GuardedBy("contexts") private final Map<TlsSettings, SSLContext> contexts = new LinkedHashMap<>(8, 0.75f, true);

    @GuardedBy("idle") private final Map<Endpoint, Deque<HttpConnection>> idle = new HashMap<>();

    @GuardedBy("idle") private boolean closed;

    public HttpClients(StorageOptions options, Clock clock) {
        this.options = options;
        this.clock = clock;
        this.proxies = EnvironmentProxySelector.of(options.environment());
        this.watch = Threads.timer("storage-watch");
        long every = Math.max(10, Math.min(1000, options.readTimeout().toMillis() / 4));
        var unused = watch.scheduleWithFixedDelay(this::sweep, every, every, TimeUnit.MILLISECONDS);
    }

    /** What two requests have in common that can use the same connection. */
    private record Endpoint(
            boolean secure,
            String host,
            int port,
            TlsSettings tls,
            @Nullable Proxy proxy) {}

    private @Nullable Proxy proxy(URI target) {
        ProxySelector selector = proxies == null ? ProxySelector.getDefault() : proxies;
        if (selector == null) {
            return null;
        }
        for (Proxy proxy : selector.select(target)) {
            if (proxy.type() == Proxy.Type.DIRECT) {
                return null;
            }
            if (proxy.type() == Proxy.Type.HTTP) {
                return proxy;
            }
        }
        return null;
    }

    /**
     * Sends a request and waits for the start of its response, without following redirects.
     *
     * @param access decides about the target and its addresses
     * @param connect the time limit for a connection
     * @param respond the time limit until the response begins
     * @throws ServingException PERMISSION_DENIED when the target may not be reached
     */
    HttpConnection.Response exchange(
            HttpCall call,
            TlsSettings tls,
            StorageAccess.Connections access,
            Duration connect,
            Duration respond,
            CancellationToken cancel)
            throws IOException {
        URI target = call.uri();
        boolean secure = "https".equalsIgnoreCase(target.getScheme());
        if (target.getHost() == null || !secure && !"http".equalsIgnoreCase(target.getScheme())) {
            throw ServingException.invalidArgument("a storage request goes to '" + target.getScheme()
                    + "' without a host (expected: http://host or https://host)");
        }
        access.check(target);
        int port = target.getPort() >= 0 ? target.getPort() : secure ? 443 : 80;
        Endpoint endpoint = new Endpoint(secure, target.getHost().toLowerCase(Locale.ROOT), port, tls, proxy(target));
        String head = head(call, endpoint);
        for (HttpConnection known = reusable(endpoint, target, access);
                known != null;
                known = reusable(endpoint, target, access)) {
            try {
                return exchange(known, endpoint, head, call, respond, cancel);
            } catch (IOException e) {
                // The server may have closed the connection when the request was sent.
                cancel.check();
                if (known.answered()
                        || e instanceof HttpTimeoutException
                        || call.method().equals("POST")) {
                    throw e;
                }
            }
        }
        return exchange(opened(endpoint, target, access, connect, cancel), endpoint, head, call, respond, cancel);
    }

    private HttpConnection.Response exchange(
            HttpConnection connection,
            Endpoint endpoint,
            String head,
            HttpCall call,
            Duration respond,
            CancellationToken cancel)
            throws IOException {
        try (Limit limit = new Limit(connection::abort, respond, cancel)) {
            try {
                return connection.exchange(
                        head,
                        call.body(),
                        call.method().equals("HEAD"),
                        reusable -> released(endpoint, connection, reusable));
            } catch (IOException | RuntimeException e) {
                connection.abort();
                throw limit.explained(e, "no response began within " + respond.toMillis() + " ms");
            }
        }
    }

    /** Ends a blocking call on a connection at a time limit or by a cancellation. */
    private final class Limit implements AutoCloseable {
        private final Runnable ending;
        private final CancellationToken cancel;
        private final Future<?> timer;
        private volatile boolean expired;

        Limit(Runnable ending, Duration limit, CancellationToken cancel) {
            this.ending = ending;
            this.cancel = cancel;
            cancel.add(ending);
            this.timer = watch.schedule(
                    () -> {
                        expired = true;
                        ending.run();
                    },
                    limit.toMillis(),
                    TimeUnit.MILLISECONDS);
        }

        IOException explained(Exception e, String what) {
            cancel.check();
            if (expired) {
                IOException timeout = new HttpTimeoutException(what);
                timeout.initCause(e);
                return timeout;
            }
            if (e instanceof RuntimeException unexpected) {
                throw unexpected;
            }
            return (IOException) e;
        }

        @Override
        public void close() {
            timer.cancel(false);
            cancel.remove(ending);
        }
    }

    private static String head(HttpCall call, Endpoint endpoint) {
        URI target = call.uri();
        boolean usual = endpoint.port() == (endpoint.secure() ? 443 : 80);
        String authority = target.getHost() + (usual ? "" : ":" + endpoint.port());
        String path = target.getRawPath() == null || target.getRawPath().isEmpty() ? "/" : target.getRawPath();
        StringBuilder head = new StringBuilder(call.method()).append(' ');
        if (endpoint.proxy() != null && !endpoint.secure()) {
            head.append("http://").append(authority);
        }
        head.append(path);
        if (target.getRawQuery() != null) {
            head.append('?').append(target.getRawQuery());
        }
        head.append(" HTTP/1.1\r\nHost: ").append(authority).append("\r\n");
        if (call.headers().keySet().stream().noneMatch("User-Agent"::equalsIgnoreCase)) {
            head.append("User-Agent: nereid\r\n");
        }
        call.headers().forEach((name, value) -> {
            if (!name.matches("[!#$%&'*+.^_`|~0-9A-Za-z-]+") || !value.matches("[\\t\\x20-\\x7e\\x80-\\xff]*")) {
                throw ServingException.invalidArgument(
                        "the storage header '" + name.replaceAll("[^!-~]", "?") + "' is not valid",
                        "header names are tokens, and values are one line each");
            }
            if (!name.equalsIgnoreCase("Host")) {
                head.append(name).append(": ").append(value).append("\r\n");
            }
        });
        if (call.sends()) {
            head.append("Content-Length: ").append(call.body().length).append("\r\n");
        }
        return head.append("\r\n").toString();
    }

    private HttpConnection opened(
            Endpoint endpoint, URI target, StorageAccess.Connections access, Duration connect, CancellationToken cancel)
            throws IOException {
        Proxy proxy = endpoint.proxy();
        List<InetAddress> addresses;
        int port = endpoint.port();
        if (proxy == null) {
            addresses = access.resolve(target);
        } else {
            InetSocketAddress at = (InetSocketAddress) proxy.address();
            port = at.getPort();
            addresses = List.of(InetAddress.getAllByName(at.getHostString()));
            refuseLiteral(target, access);
        }
        IOException problem = new UnknownHostException(endpoint.host());
        for (InetAddress address : addresses) {
            Socket socket = new Socket(Proxy.NO_PROXY);
            try {
                try (Limit limit = new Limit(() -> close(socket), connect, cancel)) {
                    try {
                        socket.setTcpNoDelay(true);
                        socket.connect(new InetSocketAddress(address, port), (int) connect.toMillis());
                        Socket used = socket;
                        if (endpoint.secure()) {
                            if (proxy != null) {
                                tunnel(socket, endpoint);
                            }
                            used = secured(socket, endpoint);
                        }
                        return new HttpConnection(socket, used, proxy == null ? address : null);
                    } catch (IOException | RuntimeException e) {
                        close(socket);
                        throw limit.explained(e, "no connection within " + connect.toMillis() + " ms");
                    }
                }
            } catch (IOException e) {
                problem = e;
            }
        }
        throw problem;
    }

    /** A proxy resolves names, but an address in the URI can be checked here. */
    private static void refuseLiteral(URI target, StorageAccess.Connections access) throws UnknownHostException {
        String host = target.getHost();
        if (host.startsWith("[") || host.matches("[0-9.]+")) {
            access.resolve(target);
        }
    }

    private static void close(Socket socket) {
        try {
            socket.close();
        } catch (IOException e) {
            // The socket is discarded, so a failure to close it does not matter.
        }
    }

    private static void tunnel(Socket socket, Endpoint endpoint) throws IOException {
        String authority = endpoint.host() + ":" + endpoint.port();
        HttpConnection.Response response = new HttpConnection(socket, socket, null)
                .exchange(
                        "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n",
                        new byte[0],
                        true,
                        reusable -> {});
        if (response.status() / 100 != 2) {
            throw new IOException("the proxy refuses the connection: status " + response.status());
        }
    }

    private Socket secured(Socket socket, Endpoint endpoint) throws IOException {
        SSLContext context = context(endpoint.tls());
        SSLSocketFactory factory =
                context == null ? (SSLSocketFactory) SSLSocketFactory.getDefault() : context.getSocketFactory();
        String host = endpoint.host();
        String name = host.startsWith("[") ? host.substring(1, host.length() - 1) : host;
        SSLSocket secured = (SSLSocket) factory.createSocket(socket, name, endpoint.port(), true);
        SSLParameters parameters = secured.getSSLParameters();
        parameters.setEndpointIdentificationAlgorithm("HTTPS");
        secured.setSSLParameters(parameters);
        secured.startHandshake();
        return secured;
    }

    private @Nullable SSLContext context(TlsSettings tls) {
        if (tls.equals(TlsSettings.MACHINE)) {
            return null;
        }
        synchronized (contexts) {
            SSLContext known = contexts.get(tls);
            if (known == null) {
                known = tls.context();
                if (known == null) {
                    return null;
                }
                contexts.put(tls, known);
                if (contexts.size() > CONTEXTS) {
                    contexts.remove(contexts.keySet().iterator().next());
                }
            }
            return known;
        }
    }

    /** An idle connection that this request may use, or null. */
    private @Nullable HttpConnection reusable(Endpoint endpoint, URI target, StorageAccess.Connections access) {
        while (true) {
            HttpConnection known;
            synchronized (idle) {
                Deque<HttpConnection> all = idle.get(endpoint);
                known = all == null ? null : all.pollFirst();
            }
            if (known == null) {
                return null;
            }
            boolean permitted = known.address == null || access.refusal(target, known.address) == null;
            if (permitted && known.reusable() && clock.nanos() - known.idleSinceNanos < IDLE_NANOS) {
                return known;
            }
            known.abort();
        }
    }

    private void released(Endpoint endpoint, HttpConnection connection, boolean reusable) {
        if (reusable) {
            connection.idleSinceNanos = clock.nanos();
            synchronized (idle) {
                Deque<HttpConnection> all = idle.computeIfAbsent(endpoint, e -> new ArrayDeque<>());
                if (!closed && all.size() < IDLE_CONNECTIONS) {
                    all.addFirst(connection);
                    return;
                }
            }
        }
        connection.abort();
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
        synchronized (idle) {
            for (Deque<HttpConnection> all : idle.values()) {
                all.removeIf(connection -> {
                    boolean old = now - connection.idleSinceNanos > IDLE_NANOS;
                    if (old) {
                        connection.abort();
                    }
                    return old;
                });
            }
            idle.values().removeIf(Deque::isEmpty);
        }
    }

    @Override
    public void close() {
        watch.shutdownNow();
        open.forEach(HttpBody::close);
        synchronized (idle) {
            closed = true;
            idle.values().forEach(all -> all.forEach(HttpConnection::abort));
            idle.clear();
        }
    }
}
