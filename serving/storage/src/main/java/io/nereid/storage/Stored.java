// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import java.nio.file.Path;

/**
 * A lease on something that is stored on this machine: until it is closed, what it names is not evicted from the
 * cache. Thread-safe; closing twice is closing once.
 */
public interface Stored extends AutoCloseable {
    /** The directory whose content is the content of the URI. Read only: others use the same files. */
    Path path();

    /**
     * What the content is, as {@code sha256:...}: equal for equal content, wherever it came from. For what is used
     * where it is ({@code file://}, {@code pvc://}) it is made of names, sizes and times instead of content.
     */
    String digest();

    /** Bytes of all files. */
    long bytes();

    /**
     * Whether the store confirmed during this fetch that this is its current content. False if the store could not be
     * reached and what it said the last time was taken ({@link StorageOptions#useStale()}).
     */
    boolean current();

    /** Ends the lease. */
    @Override
    void close();
}
