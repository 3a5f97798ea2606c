// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.certificate;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.operator.cluster.ClusterClient;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps a file with the serving certificate and its key like the Secret, on every replica. The server polls the file, so
 * that a renewed certificate needs no restart. One file holds both, since a pair must not be read half. Only the owner
 * can read it. Thread-safe.
 */
public final class CertificateFile implements AutoCloseable {
    private static final int SECONDS = 10;
    private static final Logger LOG = LoggerFactory.getLogger(CertificateFile.class);

    private final ClusterClient client;
    private final String namespace;
    private final Path directory;
    private final Path file;
    private final Runnable first;
    private final ScheduledThreadPoolExecutor timer = Threads.timer("nereid-certificate-file");
    private @Nullable String written;

    /**
     * Creates the directory of the file; does not read the Secret before {@link #start}.
     *
     * @param namespace the namespace of the Secret
     * @param first called when the file is there, on a thread of this object; again ten seconds later if it fails
     * @throws ServingException FAILED_PRECONDITION when there can be no such directory
     */
    public CertificateFile(ClusterClient client, String namespace, Runnable first) {
        this.client = client;
        this.namespace = namespace;
        this.first = first;
        try {
            // Only its owner may enter a temporary directory.
            this.directory = Files.createTempDirectory("nereid-webhook");
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "a directory for the webhook's certificate cannot be made: " + e.getMessage(),
                    "mount a directory that can be written at " + System.getProperty("java.io.tmpdir"),
                    e);
        }
        this.file = directory.resolve("certificate.pem");
    }

    /** The file, which has the certificate and its key as PEM. */
    public Path path() {
        return file;
    }

    /** Reads the Secret now and every ten seconds, on a thread of its own. */
    public void start() {
        var unused = timer.scheduleWithFixedDelay(this::look, 0, SECONDS, TimeUnit.SECONDS);
    }

    private void look() {
        try {
            refresh();
        } catch (IOException | RuntimeException e) {
            LOG.warn("the certificate of the webhook cannot be read: {}", String.valueOf(e.getMessage()));
        }
    }

    private void refresh() throws IOException {
        ObjectNode secret = client.get(ResourceKinds.SECRET, namespace, CertificateKeeper.SECRET);
        WebhookCertificates found = secret == null ? null : WebhookCertificates.read(secret);
        if (found == null) {
            LOG.debug("the leader has not made the certificate of the webhook yet");
            return;
        }
        String text = found.serving().certificate() + found.serving().key();
        if (text.equals(written)) {
            return;
        }
        Path made = Files.createTempFile(directory, "certificate", ".new");
        Files.writeString(made, text);
        Files.move(made, file, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
        if (written == null) {
            first.run();
        }
        written = text;
    }

    /** Removes the file. */
    @Override
    public void close() {
        timer.shutdownNow();
        try {
            Files.deleteIfExists(file);
            Files.deleteIfExists(directory);
        } catch (IOException e) {
            LOG.debug("the file of the webhook's certificate stays: {}", e.getMessage());
        }
    }
}
