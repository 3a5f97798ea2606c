// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.server;

import io.nereid.base.Threads;
import io.nereid.transport.ServerContext;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.tls.TlsContext;
import io.nereid.transport.tls.TlsOptions;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The TLS contexts of a server's addresses, with the threads for handshakes and for the reload of certificates. Creates
 * nothing when no address uses TLS. {@link #start} is called before an address accepts connections. Thread-safe.
 */
final class TlsContexts implements AutoCloseable {
    private final Map<TlsOptions, TlsContext> contexts = new ConcurrentHashMap<>();
    private volatile @Nullable ThreadPoolExecutor tasks;
    private @Nullable ScheduledExecutorService timer;

    /**
     * Reads the certificates and keys of addresses.
     *
     * @throws io.nereid.base.ServingException FAILED_PRECONDITION
     */
    synchronized void start(List<ServerOptions.Listen> addresses) {
        for (ServerOptions.Listen address : addresses) {
            TlsOptions options = address.tls();
            if (options == null || contexts.containsKey(options)) {
                continue;
            }
            TlsContext context = new TlsContext(options);
            contexts.put(options, context);
            if (tasks == null) {
                // a signature takes about a millisecond, which must not delay the event loop's other connections
                tasks = Threads.pool(
                        "nereid-tls", Math.max(1, Runtime.getRuntime().availableProcessors() / 2));
            }
            if (context.reloads()) {
                ScheduledExecutorService watch = timer;
                if (watch == null) {
                    watch = Threads.timer("nereid-tls-files");
                    timer = watch;
                }
                long period = context.reloadMillis();
                watch.scheduleWithFixedDelay(context::poll, period, period, TimeUnit.MILLISECONDS);
            }
        }
    }

    /**
     * The first handler of a connection to an address with TLS.
     *
     * @param next follows after the handshake
     * @param plainText whether connections without TLS are served
     */
    TlsDetector detector(ServerContext server, TlsOptions options, ProtocolDetector next, boolean plainText) {
        Executor executor = Objects.requireNonNull(tasks);
        return new TlsDetector(server, Objects.requireNonNull(contexts.get(options)), executor, next, plainText);
    }

    @Override
    public synchronized void close() {
        if (timer != null) {
            timer.shutdownNow();
        }
        if (tasks != null) {
            tasks.shutdown();
        }
    }
}
