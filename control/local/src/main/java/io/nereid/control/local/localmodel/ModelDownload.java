// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.localmodel;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ServingException;
import io.nereid.control.local.localmodel.LocalModelPlan.Model;
import io.nereid.control.local.spi.ArtifactFetcher;
import io.nereid.control.local.spi.ArtifactFetcher.Lease;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The download of one model into the cache, which keeps its files until this object is closed. A model that is larger
 * than its declared size is released again. Thread-safe.
 */
final class ModelDownload implements AutoCloseable {
    /** How far it is. */
    enum Phase {
        DOWNLOADING,
        DOWNLOADED,
        FAILED
    }

    /** A consistent view: the phase, and the last progress or the failure as text. */
    record State(Phase phase, String message) {}

    private final Model model;
    private final Runnable changed;

    @GuardedBy("this") private State state = new State(Phase.DOWNLOADING, "");

    @GuardedBy("this") private @Nullable Lease lease;

    @GuardedBy("this") private @Nullable CompletableFuture<Lease> running;

    @GuardedBy("this") private boolean closed;

    /** @param changed called after each change of the state; does not block */
    ModelDownload(Model model, Runnable changed) {
        this.model = model;
        this.changed = changed;
    }

    Model model() {
        return model;
    }

    synchronized State state() {
        return state;
    }

    /** Starts to fetch; does not block. */
    void start(ArtifactFetcher fetcher) {
        CompletableFuture<Lease> fetching = fetcher.fetch(model.artifact(), model.namespace(), this::progress)
                .toCompletableFuture();
        synchronized (this) {
            running = fetching;
        }
        CompletableFuture<Void> unused = fetching.handle((found, failure) -> {
            if (failure != null) {
                failed(ServingException.from(
                                failure instanceof CompletionException && failure.getCause() != null
                                        ? failure.getCause()
                                        : failure)
                        .describe());
            } else {
                fetched(found);
            }
            return null;
        });
    }

    private void progress(String line) {
        synchronized (this) {
            if (state.phase() != Phase.DOWNLOADING) {
                return;
            }
            state = new State(Phase.DOWNLOADING, line);
        }
        changed.run();
    }

    private void failed(String message) {
        synchronized (this) {
            state = new State(Phase.FAILED, message);
        }
        changed.run();
    }

    private void fetched(Lease found) {
        long bytes;
        try {
            bytes = size(found.path());
        } catch (IOException e) {
            found.close();
            failed("the downloaded files cannot be read: " + e.getMessage());
            return;
        }
        if (bytes > model.size()) {
            found.close();
            failed("the model has " + bytes + " bytes, more than modelSize, " + model.size()
                    + "; raise modelSize in a new resource");
            return;
        }
        synchronized (this) {
            if (closed) {
                found.close();
                return;
            }
            lease = found;
            state = new State(Phase.DOWNLOADED, bytes + " bytes");
        }
        changed.run();
    }

    private static long size(Path path) throws IOException {
        try (Stream<Path> files = Files.walk(path)) {
            long bytes = 0;
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                bytes += Files.size(file);
            }
            return bytes;
        }
    }

    /** Stops the download, or lets the cache remove the files. */
    @Override
    public void close() {
        Lease held;
        CompletableFuture<Lease> fetching;
        synchronized (this) {
            closed = true;
            held = lease;
            lease = null;
            fetching = running;
        }
        if (held != null) {
            held.close();
        } else if (fetching != null) {
            fetching.cancel(true);
        }
    }
}
