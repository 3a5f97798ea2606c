// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import io.nereid.base.Clock;
import io.nereid.base.Code;
import io.nereid.base.ServingException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/**
 * Brings models from where they are stored to a cache on this machine, which all share. Thread-safe; the work is done on
 * threads of its own.
 */
public final class Storage implements AutoCloseable {
    private final StorageOptions options;
    private final Clock clock;

    /**
     * Opens the cache, clearing what an earlier process left behind half done.
     *
     * @throws ServingException FAILED_PRECONDITION if another process uses the cache, INTERNAL if it cannot be made
     */
    public Storage(StorageOptions options, Clock clock) {
        this.options = options;
        this.clock = clock;
    }

    /** Whether a URI names a kind of store that is known. */
    public static boolean supports(String uri) {
        try {
            check(uri);
            return true;
        } catch (ServingException e) {
            return false;
        }
    }

    /**
     * Refuses a URI that no store here can serve.
     *
     * @throws ServingException INVALID_ARGUMENT with the supported forms
     */
    public static void check(String uri) {
        Uris.kind(uri);
    }

    /**
     * Brings what a URI names, or finds it in the cache. The store is asked each time whether it is still the same; two
     * requests for the same share one download. Cancelling the future of the stage
     * ({@code toCompletableFuture().cancel(true)}) gives up; what was brought so far is kept for the next attempt.
     *
     * @return a lease, which the caller closes. Fails with a ServingException: INVALID_ARGUMENT (URI, settings, a hostile
     *     archive), NOT_FOUND, UNAUTHENTICATED and PERMISSION_DENIED (the store said so), UNAVAILABLE (it cannot be
     *     reached), RESOURCE_EXHAUSTED (disk or quota), DATA_LOSS (a checksum does not agree), FAILED_PRECONDITION
     */
    public CompletionStage<Stored> fetch(StorageRequest request, Progress progress) {
        return CompletableFuture.failedFuture(ServingException.of(
                Code.UNIMPLEMENTED, "storage in " + options.cache() + " is not built at " + clock.millis()));
    }

    /** Stops what is under way; leases stay usable as paths but protect nothing any more. */
    @Override
    public void close() {}
}
