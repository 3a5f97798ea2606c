// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.rest;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.util.ArrayDeque;
import java.util.concurrent.CompletableFuture;

/** Limits the requests in flight, each of which holds a connection of HTTP/1.1; the others wait in order. Thread-safe. */
final class HttpConnectionLimit {
    @GuardedBy("this") private final ArrayDeque<CompletableFuture<Void>> waiting = new ArrayDeque<>();

    @GuardedBy("this") private int free;

    HttpConnectionLimit(int connections) {
        this.free = connections;
    }

    /** Completes when a connection may be used, which {@link #release()} gives back. A future that is cancelled holds none. */
    CompletableFuture<Void> acquire() {
        synchronized (this) {
            if (free == 0) {
                CompletableFuture<Void> later = new CompletableFuture<>();
                waiting.add(later);
                return later;
            }
            free--;
        }
        return CompletableFuture.completedFuture(null);
    }

    void release() {
        while (true) {
            CompletableFuture<Void> next;
            synchronized (this) {
                next = waiting.poll();
                if (next == null) {
                    free++;
                    return;
                }
            }
            // false for one that was cancelled while it waited
            if (next.complete(null)) {
                return;
            }
        }
    }
}
