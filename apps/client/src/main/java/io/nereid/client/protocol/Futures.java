// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.protocol;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** Futures whose end is observed, and whose cancellation goes through to what they wait for. Stateless. */
public final class Futures {
    private Futures() {}

    /** Runs an action, which must not throw, when a future ends. */
    public static <T extends @Nullable Object> void whenDone(
            CompletableFuture<T> future, BiConsumer<? super T, ? super Throwable> action) {
        var unused = future.whenComplete(action);
    }

    /** Cancels {@code inner} when {@code outer} is cancelled. */
    public static void cancelWith(CompletableFuture<?> outer, Future<?> inner) {
        whenDone(outer, (value, e) -> {
            if (outer.isCancelled()) {
                inner.cancel(true);
            }
        });
    }
}
