// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.object;

import io.nereid.storage.http.HttpCall;
import org.jspecify.annotations.Nullable;

/**
 * An object of a store. Immutable.
 *
 * @param path relative to the listed URI, with slashes
 * @param size in bytes, or -1 if unknown
 * @param version identifies the content (entity tag, generation, digest or time); empty if the store does not give one
 * @param tag the entity tag that every response must have, or null if it is not checked
 * @param checksum the expected checksum of the content, or null if the store does not give one
 * @param ranges how byte ranges are requested
 * @param fetch makes the requests
 */
public record ObjectEntry(
        String path,
        long size,
        String version,
        @Nullable String tag,
        ContentDigests.@Nullable Checksum checksum,
        Ranges ranges,
        Fetch fetch) {

    /** How byte ranges are requested. */
    public enum Ranges {
        /** Not supported. */
        NONE,
        /** With the Range header; the response has status 206. */
        HEADER,
        /** With query parameters; the response has status 200. */
        QUERY
    }

    /** Makes the request for the bytes from {@code from} to {@code to} (exclusive; -1 for the end). */
    @FunctionalInterface
    public interface Fetch {
        HttpCall call(long from, long to);
    }

    public ObjectEntry without(Ranges none) {
        return new ObjectEntry(path, size, version, tag, checksum, none, fetch);
    }
}
