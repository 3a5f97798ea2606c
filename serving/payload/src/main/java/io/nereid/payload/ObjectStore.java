// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import java.io.IOException;

/**
 * A store that objects are written to by key: a directory or a bucket of an object store. Implementations are
 * thread-safe and may block.
 */
public interface ObjectStore {
    /**
     * Writes an object; replaces an object of the same key. Readers see the complete object or none.
     *
     * @param key segments separated by slashes, none of which is empty, {@code .} or {@code ..}
     * @throws IOException when it could not be written; a retry may succeed
     * @throws io.nereid.base.ServingException likewise; INVALID_ARGUMENT, UNAUTHENTICATED, PERMISSION_DENIED and
     *     NOT_FOUND when a retry cannot succeed
     */
    void put(String key, byte[] bytes) throws IOException;

    /** Opens the object stores outside of this machine. Thread-safe. */
    @FunctionalInterface
    interface Opener {
        /** Rejects every URL. */
        Opener NONE = (url, storage, origin) -> {
            throw io.nereid.base.ServingException.invalidArgument(
                    "a logger cannot write to '" + url + "' here (expected: http://, https:// or file://)",
                    "log to file:///directory, or over HTTP to something that writes to the store");
        };

        /**
         * Opens a store. The path of its URL after the bucket is a prefix of all keys. Does not connect to the store:
         * its errors are reported by {@link ObjectStore#put}.
         *
         * @param url {@code s3://bucket/prefix}, {@code gs://…}, {@code abfs://…} or {@code abfss://…}
         * @param storage the credentials to use, and the store's parameters
         * @param origin the service that logs; the credentials are those of its namespace
         * @throws io.nereid.base.ServingException INVALID_ARGUMENT when the URL or its credentials cannot be used
         */
        ObjectStore open(String url, PayloadSettings.Storage storage, PayloadOrigin origin);
    }
}
