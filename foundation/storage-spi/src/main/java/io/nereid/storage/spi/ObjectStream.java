// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.spi;

import java.io.IOException;

/** The bytes of a range. One thread reads; any thread may close, which makes the read fail. */
public interface ObjectStream extends AutoCloseable {
    /**
     * Reads up to {@code limit} bytes to the beginning of a buffer. Blocks until there is at least one.
     *
     * @return how many, or -1 at the end
     * @throws IOException when the connection fails, nothing arrives within the read timeout, or the stream was closed
     */
    int read(byte[] buffer, int limit) throws IOException;

    /**
     * Whether the store says that the object's entity tag is not a digest of its content, as for objects that it encrypts
     * with a key: a checksum by {@link ChecksumAlgorithm#TAG_MD5} is then ignored.
     */
    default boolean opaqueTag() {
        return false;
    }

    /** Ends the read and releases the connection. Does not wait for bytes that were not read. */
    @Override
    void close();
}
