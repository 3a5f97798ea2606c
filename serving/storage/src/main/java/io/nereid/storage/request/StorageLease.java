// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.request;

import java.nio.file.Path;

/**
 * A lease on a downloaded model: its files are not evicted from the cache until the lease is closed. Thread-safe;
 * closing twice has no further effect.
 */
public interface StorageLease extends AutoCloseable {
    /** The directory with the content of the URI. Read only: other leases share the same files. */
    Path path();

    /**
     * The content's digest, as {@code sha256:...}: equal for equal content, whatever its URI. For files that are used
     * in place ({@code file://}, {@code pvc://}) it is computed from names, sizes and times instead of content.
     */
    String digest();

    /** Bytes of all files. */
    long bytes();

    /**
     * Whether the store confirmed during this fetch that this is its current content. False if the store could not be
     * reached and the last fetched copy is used ({@link StorageOptions#useStale()}).
     */
    boolean current();

    /** Ends the lease. */
    @Override
    void close();
}
