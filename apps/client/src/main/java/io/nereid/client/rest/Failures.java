// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.rest;

import io.nereid.client.infer.InferenceException;
import io.nereid.client.protocol.Futures;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Results and exceptions of futures whose cancellation goes through to the request. Stateless. */
final class Failures {
    private Failures() {}

    /** The exception of a stage without its wrapping. */
    static @Nullable Throwable unwrap(@Nullable Throwable e) {
        return e instanceof CompletionException && e.getCause() != null ? e.getCause() : e;
    }

    static boolean isTransient(@Nullable Throwable e) {
        return unwrap(e) instanceof InferenceException known && known.isTransient();
    }

    static <T> void copy(@Nullable T value, @Nullable Throwable e, CompletableFuture<T> to) {
        Throwable failure = unwrap(e);
        if (failure != null) {
            to.completeExceptionally(failure);
        } else {
            complete(value, to);
        }
    }

    @SuppressWarnings("NullAway") // a future of Void has null as its value
    private static <T> void complete(@Nullable T value, CompletableFuture<T> to) {
        to.complete(value);
    }

    static <T> CompletableFuture<T> map(CompletableFuture<HttpAnswer> from, Function<HttpAnswer, T> read) {
        CompletableFuture<T> to = new CompletableFuture<>();
        Futures.cancelWith(to, from);
        Futures.whenDone(from, (reply, e) -> {
            Throwable failure = unwrap(e);
            if (failure != null) {
                to.completeExceptionally(failure);
                return;
            }
            try {
                to.complete(read.apply(reply));
            } catch (RuntimeException failed) {
                to.completeExceptionally(failed);
            }
        });
        return to;
    }

    @SuppressWarnings("NullAway") // a future of Void has null as its value
    static CompletableFuture<Void> done(CompletableFuture<HttpAnswer> from) {
        return map(from, reply -> null);
    }

    /** True for a success, and false for an error that a server answered with, except those about credentials. */
    static CompletableFuture<Boolean> health(CompletableFuture<HttpAnswer> from, Function<HttpAnswer, byte[]> body) {
        CompletableFuture<Boolean> to = new CompletableFuture<>();
        Futures.cancelWith(to, from);
        Futures.whenDone(from, (reply, e) -> {
            Throwable failure = unwrap(e);
            if (failure == null) {
                to.complete(isTrue(body.apply(reply)));
            } else if (failure instanceof InferenceException known
                    && known.httpStatus() >= 400
                    && known.httpStatus() != 401
                    && known.httpStatus() != 403) {
                to.complete(false);
            } else {
                to.completeExceptionally(failure);
            }
        });
        return to;
    }

    /** KServe's servers answer with an object that says it; others with an empty body. */
    private static boolean isTrue(byte[] body) {
        if (body.length == 0 || body[0] != '{') {
            return true;
        }
        var root = Json.tree(body);
        for (String member : new String[] {"live", "ready"}) {
            var value = root.get(member);
            if (value != null) {
                return value.asText().equalsIgnoreCase("true");
            }
        }
        return true;
    }
}
