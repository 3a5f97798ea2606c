// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spring.client;

import io.nereid.base.ErrorCode;
import io.nereid.client.NereidClient;
import io.nereid.client.infer.InferenceException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * What the health indicators show of the server of a client; Spring Boot 3 and 4 have types of their own for it. Immutable.
 *
 * @param up whether the server is ready; with V1, which does not have readiness, whether it is live
 * @param state {@code ready}, {@code not ready}, or why the server could not be asked
 */
public record ServerHealth(boolean up, String state) {
    /** A probe that takes longer would be given up by who asks for it. */
    private static final Duration LIMIT = Duration.ofSeconds(5);

    /** Asks the server, and waits at most five seconds. */
    public static ServerHealth of(NereidClient client) {
        return of(client, LIMIT);
    }

    static ServerHealth of(NereidClient client, Duration limit) {
        try {
            return of(await(client.async().isReady(), limit));
        } catch (InferenceException e) {
            if (e.code() != ErrorCode.UNIMPLEMENTED) {
                return new ServerHealth(false, e.code() + ": " + e.getMessage());
            }
        }
        try {
            return of(await(client.async().isLive(), limit));
        } catch (InferenceException e) {
            return new ServerHealth(false, e.code() + ": " + e.getMessage());
        }
    }

    private static boolean await(CompletableFuture<Boolean> answer, Duration limit) {
        try {
            return answer.get(limit.toNanos(), TimeUnit.NANOSECONDS);
        } catch (ExecutionException e) {
            if (e.getCause() instanceof InferenceException known) {
                throw known;
            }
            throw InferenceException.of(ErrorCode.UNKNOWN, String.valueOf(e.getCause()), e);
        } catch (TimeoutException e) {
            answer.cancel(true);
            throw InferenceException.of(ErrorCode.DEADLINE_EXCEEDED, "no answer within " + limit.toMillis() + " ms", e);
        } catch (InterruptedException e) {
            answer.cancel(true);
            Thread.currentThread().interrupt();
            throw InferenceException.of(ErrorCode.CANCELLED, "the thread was interrupted", e);
        }
    }

    private static ServerHealth of(boolean ready) {
        return new ServerHealth(ready, ready ? "ready" : "not ready");
    }
}
