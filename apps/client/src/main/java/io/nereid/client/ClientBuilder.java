// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client;

import io.nereid.base.Clock;
import io.nereid.base.Threads;
import io.nereid.client.grpc.GrpcConnection;
import io.nereid.client.options.ClientTlsOptions;
import io.nereid.client.options.Protocol;
import io.nereid.client.options.RequestInterceptor;
import io.nereid.client.options.RequestRetryPolicy;
import io.nereid.client.options.TensorEncoding;
import io.nereid.client.protocol.ProtocolConnection;
import io.nereid.client.rest.HttpCalls;
import io.nereid.client.rest.V1Connection;
import io.nereid.client.rest.V2RestConnection;
import java.net.URI;
import java.net.URISyntaxException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;

/** Collects the settings of a {@link NereidClient}. Confined to one thread. */
public final class ClientBuilder {
    private static final int REST_CONNECTIONS = 64;

    private final URI url;
    private final boolean secure;
    private final List<RequestInterceptor> interceptors = new ArrayList<>();
    final Map<String, String> headers = new HashMap<>();
    Duration timeout = Duration.ofSeconds(30);
    private @Nullable Protocol protocol;
    private Duration connectTimeout = Duration.ofSeconds(10);
    private RequestRetryPolicy retries = RequestRetryPolicy.standard();
    private @Nullable ClientTlsOptions tls;
    private @Nullable Executor executor;
    private @Nullable Supplier<String> apiKey;
    private int connections;
    private TensorEncoding encoding = TensorEncoding.AUTO;

    ClientBuilder(String text) {
        URI given;
        try {
            given = new URI(text);
        } catch (URISyntaxException e) {
            throw new IllegalArgumentException("'" + text + "' is not a URL: " + e.getMessage(), e);
        }
        String scheme = given.getScheme() == null ? "" : given.getScheme().toLowerCase(Locale.ROOT);
        boolean known = List.of("http", "https", "grpc", "grpcs").contains(scheme);
        boolean plain = given.getRawQuery() == null && given.getRawFragment() == null && given.getRawUserInfo() == null;
        if (!known || given.getHost() == null || !plain) {
            throw new IllegalArgumentException("'" + text + "' is not the URL of a server (expected: http://HOST:PORT,"
                    + " https://…, grpc://HOST:PORT or grpcs://…, without user, query and fragment)");
        }
        this.url = given;
        this.secure = scheme.endsWith("s");
        if (scheme.startsWith("grpc")) {
            protocol = Protocol.V2_GRPC;
        }
    }

    /** The protocol; without it V2 over gRPC for {@code grpc://} and {@code grpcs://}, else V2 over REST. */
    public ClientBuilder protocol(Protocol value) {
        if (protocol == Protocol.V2_GRPC && value != Protocol.V2_GRPC) {
            throw new IllegalArgumentException(
                    value + " with " + url.getScheme() + "://… (expected: http:// or https://)");
        }
        this.protocol = value;
        return this;
    }

    /** The protocol that was chosen, or follows from the URL. */
    Protocol protocol() {
        return protocol == null ? Protocol.V2_REST : protocol;
    }

    /**
     * A key or token, sent as {@code authorization: Bearer …}. For servers that want it elsewhere use {@link #header}, such as
     * {@code header("x-api-key", key)}. Without TLS it travels in clear text.
     */
    public ClientBuilder apiKey(String key) {
        return apiKey(() -> key);
    }

    /** As {@link #apiKey(String)}, read again for each attempt, for tokens that expire. It must not block for long. */
    public ClientBuilder apiKey(Supplier<String> key) {
        this.apiKey = key;
        return this;
    }

    /** A header of each request; metadata with gRPC. */
    public ClientBuilder header(String name, String value) {
        headers.put(name.toLowerCase(Locale.ROOT), value);
        return this;
    }

    /** The time for a call, retries included, unless a request has its own. 30 seconds by default. */
    public ClientBuilder timeout(Duration value) {
        this.timeout = positive("timeout", value);
        return this;
    }

    /** The time for a connection to be made. 10 seconds by default. */
    public ClientBuilder connectTimeout(Duration value) {
        this.connectTimeout = positive("connectTimeout", value);
        return this;
    }

    private static Duration positive(String name, Duration value) {
        if (value.isNegative() || value.isZero()) {
            throw new IllegalArgumentException(name + " " + value + " (expected: more than 0)");
        }
        return value;
    }

    /** When calls are repeated; {@link RequestRetryPolicy#standard()} by default. */
    public ClientBuilder retries(RequestRetryPolicy policy) {
        this.retries = policy;
        return this;
    }

    /** TLS for {@code https://} and {@code grpcs://}; by default the authorities of the JVM are trusted. */
    public ClientBuilder tls(ClientTlsOptions options) {
        if (!secure) {
            throw new IllegalArgumentException("TLS with " + url.getScheme() + "://… (expected: https:// or grpcs://)");
        }
        this.tls = options;
        return this;
    }

    /**
     * What futures and subscribers run on; the caller ends it. By default the client has threads of its own, as many as there are
     * callbacks at a time.
     */
    public ClientBuilder executor(Executor value) {
        this.executor = value;
        return this;
    }

    /**
     * The most connections at a time. Over REST each has one request at a time, and further calls wait within their timeout: 64 by
     * default. Over gRPC they are shared by all calls, which take them in turn: 1 by default.
     */
    public ClientBuilder maxConnections(int value) {
        if (value < 1) {
            throw new IllegalArgumentException("maxConnections " + value + " (expected: 1 or more)");
        }
        this.connections = value;
        return this;
    }

    /** How tensors travel with V2 over REST; {@link TensorEncoding#AUTO} by default. */
    public ClientBuilder tensorEncoding(TensorEncoding value) {
        this.encoding = value;
        return this;
    }

    /** Adds an interceptor. They run in the order in which they are added. */
    public ClientBuilder interceptor(RequestInterceptor interceptor) {
        interceptors.add(interceptor);
        return this;
    }

    /**
     * Makes the client. Connections are made with the first call.
     *
     * @throws IllegalArgumentException for settings that do not fit together, and files for TLS that cannot be read
     */
    public NereidClient build() {
        URI server = address();
        SSLContext context = secure ? (tls == null ? ClientTlsOptions.standard() : tls).sslContext() : null;
        ScheduledThreadPoolExecutor timer = Threads.timer("nereid-client-timer");
        ThreadPoolExecutor own = executor == null ? threads() : null;
        Executor runs = own != null ? own : executor == null ? Runnable::run : executor;
        List<RequestInterceptor> all = new ArrayList<>();
        Supplier<String> key = apiKey;
        if (key != null) {
            all.add(attempt -> attempt.header("authorization", "Bearer " + key.get()));
        }
        all.addAll(interceptors);
        CallRuntime runtime = new CallRuntime(url.toString(), Clock.system(), timer, runs, retries, all);
        ProtocolConnection connection = connection(server, context, runs);
        return new NereidClient(this, connection, runtime, () -> {
            timer.shutdownNow();
            if (own != null) {
                own.shutdown();
            }
        });
    }

    private static ThreadPoolExecutor threads() {
        return new ThreadPoolExecutor(
                0, Integer.MAX_VALUE, 10, TimeUnit.SECONDS, new SynchronousQueue<>(), Threads.named("nereid-client"));
    }

    private ProtocolConnection connection(URI server, @Nullable SSLContext context, Executor runs) {
        if (protocol() == Protocol.V2_GRPC) {
            return new GrpcConnection(server, Math.max(1, connections), connectTimeout, context, runs, Clock.system());
        }
        int limit = connections == 0 ? REST_CONNECTIONS : connections;
        HttpCalls http = new HttpCalls(server, limit, connectTimeout, context, runs);
        return protocol() == Protocol.V1 ? new V1Connection(http) : new V2RestConnection(http, encoding);
    }

    private URI address() {
        boolean grpc = protocol() == Protocol.V2_GRPC;
        if (grpc && !url.getRawPath().isEmpty() && !url.getRawPath().equals("/")) {
            throw new IllegalArgumentException("'" + url + "' has a path, which gRPC does not have (expected: "
                    + url.getScheme() + "://HOST:PORT)");
        }
        if (encoding != TensorEncoding.AUTO && protocol() != Protocol.V2_REST) {
            throw new IllegalArgumentException("tensorEncoding " + encoding + " with " + protocol()
                    + " (expected: V2_REST, the protocol that has two encodings)");
        }
        if (!grpc) {
            return url;
        }
        if (url.getPort() < 0) {
            throw new IllegalArgumentException("'" + url + "' has no port, and gRPC has no default one (expected: "
                    + url.getScheme() + "://HOST:PORT)");
        }
        return url;
    }
}
