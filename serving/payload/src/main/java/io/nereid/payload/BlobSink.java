// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import java.io.IOException;

/**
 * Somewhere that objects are written to by key: a directory, or a bucket of an object store. Implementations are thread-safe
 * and may block.
 */
public interface BlobSink {
    /**
     * Writes an object, in the place of one of the same key. Whoever reads sees all of it or none.
     *
     * @param key segments separated by slashes, none of which is empty, {@code .} or {@code ..}
     * @throws IOException when it could not be written; the same may work later
     * @throws io.nereid.base.ServingException likewise; INVALID_ARGUMENT, UNAUTHENTICATED, PERMISSION_DENIED and NOT_FOUND
     *     when trying again is of no use
     */
    void put(String key, byte[] bytes) throws IOException;

    /** Knows the stores outside of this machine. Thread-safe. */
    @FunctionalInterface
    interface Opener {
        /** Knows none. */
        Opener NONE = (url, storage, origin) -> {
            throw io.nereid.base.ServingException.invalidArgument(
                    "a logger cannot write to '" + url + "' here (expected: http://, https:// or file://)",
                    "log to file:///directory, or over HTTP to something that writes to the store");
        };

        /**
         * Opens a store; what its URL says after the bucket goes before all keys. Nothing is asked of the store yet; what it
         * refuses is told by {@link BlobSink#put}.
         *
         * @param url {@code s3://bucket/prefix}, {@code gs://…}, {@code abfs://…} or {@code abfss://…}
         * @param storage whose credentials to use, and how
         * @param origin the service that logs; the credentials are of its namespace
         * @throws io.nereid.base.ServingException INVALID_ARGUMENT when it cannot be
         */
        BlobSink open(String url, PayloadSettings.Storage storage, PayloadOrigin origin);
    }
}
