// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.cache;

import io.nereid.storage.request.StorageLease;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;

/**
 * Where downloads go: the cache that services share, or one directory. It keeps interrupted downloads, gives directories
 * for content under construction, and takes over complete content. Thread-safe.
 */
public interface DownloadTarget {
    /** The directory, for messages. */
    Path directory();

    /** What helps when the disk is full, for messages. */
    String remedyWhenFull();

    /** Returns a lease on the content that a name was {@link #remember given} to, if it is still complete. */
    Optional<StorageLease> find(String name, boolean current);

    /** Gives a name to the content with a digest. A failure is only logged: the content is then fetched again. */
    void remember(String name, String digest);

    /** Creates a temporary directory in which content is built before {@link #publish}. */
    Path stagingDirectory() throws IOException;

    /** Returns the directory of a partial download, created if absent; the caller owns it until {@link #leave}. */
    Path enter(String key) throws IOException;

    /** Returns the directory of a partial download, which is kept for the next attempt or deleted. */
    void leave(String key, boolean keep);

    /** Creates a reservation of disk space for a download; {@code what} names it in error messages. */
    CacheReservation space(String what);

    /**
     * Takes over the content in {@code tree} of a staging directory.
     *
     * @param digest of the content
     * @param bytes of all files
     * @param uri without secrets, for those who inspect the directory
     */
    StorageLease publish(Path stagingDirectory, String digest, long bytes, String uri) throws IOException;
}
