// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.webhook;

import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.operator.certificate.CertificateFile;
import io.nereid.control.operator.cluster.ClusterClient;
import java.time.Duration;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The webhook of one replica: it listens once the definitions are there, its caches are filled and the leader has made
 * the certificate, and tries again until then. Thread-safe.
 */
public final class Webhook implements AutoCloseable {
    private static final Duration SYNC = Duration.ofSeconds(30);
    private static final int RETRY_SECONDS = 10;
    private static final Logger LOG = LoggerFactory.getLogger(Webhook.class);

    private final ClusterClient client;
    private final String namespace;
    private final WebhookOptions options;
    private final CertificateFile file;
    private final ScheduledThreadPoolExecutor timer = Threads.timer("nereid-webhook-start");
    private @Nullable ClusterAdmissionContext context;
    private @Nullable WebhookServer server;
    private boolean closed;

    /** @param namespace the operator's namespace */
    public Webhook(ClusterClient client, String namespace, WebhookOptions options) {
        this.client = client;
        this.namespace = namespace;
        this.options = options;
        this.file = new CertificateFile(client, namespace, this::listen);
    }

    /** Begins to prepare, and returns at once. */
    public void start() {
        timer.execute(this::fill);
    }

    private void fill() {
        ClusterAdmissionContext filled = new ClusterAdmissionContext(client, namespace, options.conditions());
        try {
            filled.start(SYNC);
        } catch (RuntimeException e) {
            filled.close();
            LOG.warn(
                    "the webhook cannot start yet, and tries again in {} s: {}",
                    RETRY_SECONDS,
                    ServingException.from(e).describe());
            synchronized (this) {
                if (!closed) {
                    var unused = timer.schedule(this::fill, RETRY_SECONDS, TimeUnit.SECONDS);
                }
            }
            return;
        }
        synchronized (this) {
            if (closed) {
                filled.close();
                return;
            }
            context = filled;
            file.start();
        }
    }

    private synchronized void listen() {
        if (closed || context == null) {
            return;
        }
        WebhookServer made = new WebhookServer(options.port(), file.path(), context, client, namespace);
        int unused = made.start();
        server = made;
    }

    @Override
    public void close() {
        timer.shutdownNow();
        file.close();
        WebhookServer serving;
        ClusterAdmissionContext filled;
        synchronized (this) {
            closed = true;
            serving = server;
            filled = context;
        }
        if (serving != null) {
            serving.close();
        }
        if (filled != null) {
            filled.close();
        }
    }
}
