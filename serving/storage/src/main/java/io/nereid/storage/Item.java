// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import org.jspecify.annotations.Nullable;

/**
 * An object of a store. Immutable.
 *
 * @param path below what was asked for, with slashes
 * @param size in bytes, or -1 if the store does not say
 * @param version what changes when the object does (entity tag, generation, digest, time); empty if the store says nothing
 * @param tag the entity tag that every answer must bear, or null if that is not looked at
 * @param checksum what the content must have, or null if the store does not say
 * @param ranges how parts are asked for
 * @param fetch makes the requests
 */
record Item(
        String path,
        long size,
        String version,
        @Nullable String tag,
        Digests.@Nullable Checksum checksum,
        Ranges ranges,
        Fetch fetch) {

    /** How parts are asked for. */
    enum Ranges {
        /** Not at all. */
        NONE,
        /** By the header; the answer is 206. */
        HEADER,
        /** By the query; the answer is 200. */
        QUERY
    }

    /** Makes the request for the bytes from {@code from} to before {@code to}, or to the end if that is -1. */
    @FunctionalInterface
    interface Fetch {
        HttpCall call(long from, long to);
    }

    Item without(Ranges none) {
        return new Item(path, size, version, tag, checksum, none, fetch);
    }
}
