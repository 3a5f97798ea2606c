// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.polling;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * What a poll compares of a file or directory instead of reading it. Immutable.
 *
 * @param modified modification time in nanoseconds since 1970; that of a directory changes with its entries
 * @param size size in bytes; 0 for a directory
 * @param key device and inode, which differ when another file was moved to the path; null where unsupported
 * @param directory whether it is a directory
 */
record FileStamp(long modified, long size, @Nullable Object key, boolean directory) {
    /** Resolution of modification times, at worst (FAT). */
    private static final long GRANULARITY_MILLIS = 2_000;

    static FileStamp of(BasicFileAttributes attributes) {
        boolean directory = attributes.isDirectory();
        return new FileStamp(
                attributes.lastModifiedTime().to(TimeUnit.NANOSECONDS),
                directory ? 0 : attributes.size(),
                attributes.fileKey(),
                directory);
    }

    /** The stamp of a path now, of a link's target; null if it does not exist or cannot be read. */
    static @Nullable FileStamp read(Path path) {
        try {
            return of(Files.readAttributes(path, BasicFileAttributes.class));
        } catch (IOException e) {
            return null;
        }
    }

    /**
     * Whether a later change is certain to give another stamp. A time as young as the resolution of file systems, or
     * one in the future, may stand for two changes of which only one was seen.
     */
    boolean settled(long nowMillis) {
        return TimeUnit.NANOSECONDS.toMillis(modified) <= nowMillis - GRANULARITY_MILLIS;
    }
}
