// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.spi;

import org.jspecify.annotations.Nullable;

/**
 * An object of a store. Immutable.
 *
 * @param path relative to the listed URI, with slashes
 * @param size in bytes, or -1 if unknown
 * @param version identifies the content (entity tag, generation, digest or time); empty if the store does not give one
 * @param checksum the expected checksum of the content, or null if the store does not give one
 * @param ranges whether ranges of the object can be read; without, it is read from its beginning to its end
 * @param reader reads the content
 */
public record ObjectEntry(
        String path, long size, String version, @Nullable Checksum checksum, boolean ranges, ObjectReader reader) {
    /** This object under another path. */
    public ObjectEntry withPath(String other) {
        return new ObjectEntry(other, size, version, checksum, ranges, reader);
    }

    /** This object, read as a whole. */
    public ObjectEntry withoutRanges() {
        return new ObjectEntry(path, size, version, checksum, false, reader);
    }
}
