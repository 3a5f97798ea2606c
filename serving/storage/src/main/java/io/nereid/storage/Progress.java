// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

/**
 * Hears how a fetch gets on. Called from the storage's threads, at most a few times a second and once at the end; must
 * return quickly. Implementations are thread-safe.
 */
@FunctionalInterface
public interface Progress {
    /** What a fetch is doing. */
    enum Phase {
        /** Asking the store what is there. */
        LISTING,
        /** Bringing bytes. */
        DOWNLOADING,
        /** Unpacking an archive or layers. */
        UNPACKING,
        /** Computing digests and writing to disk for good. */
        STORING,
        /** It is here. */
        DONE
    }

    /**
     * A moment of a fetch. Immutable.
     *
     * @param bytes brought so far, counting what an earlier attempt had brought
     * @param totalBytes of all that is to come, or -1 while it is not known
     * @param files complete so far
     * @param totalFiles to come, or -1 while it is not known
     */
    record Step(Phase phase, long bytes, long totalBytes, int files, int totalFiles) {}

    /** A new moment. */
    void on(Step step);

    /** Hears nothing. */
    static Progress none() {
        return step -> {};
    }
}
