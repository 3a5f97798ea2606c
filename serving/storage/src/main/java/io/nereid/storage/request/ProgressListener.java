// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.request;

/**
 * Receives the progress of a fetch. Called from the storage's threads, at most a few times a second and once at the
 * end. Implementations must return quickly and be thread-safe.
 */
@FunctionalInterface
public interface ProgressListener {
    /** The phases of a fetch, in order. */
    enum Phase {
        /** Listing the store's objects. */
        LISTING,
        /** Downloading objects. */
        DOWNLOADING,
        /** Unpacking an archive or layers. */
        UNPACKING,
        /** Computing digests and publishing the content in the cache. */
        STORING,
        /** Complete. */
        DONE
    }

    /**
     * A progress update. Immutable.
     *
     * @param bytes downloaded so far, including those of an earlier attempt
     * @param totalBytes of all objects, or -1 while unknown
     * @param files complete so far
     * @param totalFiles number of all files, or -1 while unknown
     */
    record Step(Phase phase, long bytes, long totalBytes, int files, int totalFiles) {}

    /** Receives an update. */
    void on(Step step);

    /** Ignores all updates. */
    static ProgressListener none() {
        return step -> {};
    }
}
