// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.store;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** How files are written: the seam where tests let a disk fill up. Implementations are thread-safe. */
interface StoreFiles {
    /** The real ones. */
    StoreFiles REAL = new StoreFiles() {
        @Override
        public void write(FileChannel file, ByteBuffer bytes, long position) throws IOException {
            long at = position;
            while (bytes.hasRemaining()) {
                at += file.write(bytes, at);
            }
        }

        @Override
        public void force(FileChannel file) throws IOException {
            file.force(false);
        }
    };

    /** Writes all bytes. */
    void write(FileChannel file, ByteBuffer bytes, long position) throws IOException;

    /** Returns when everything that was written is on disk. */
    void force(FileChannel file) throws IOException;

    /** Returns when a directory's names are on disk; where directories cannot be forced, as on Windows, it does nothing. */
    static void forceNames(Path directory) throws IOException {
        if (java.io.File.separatorChar == '\\') {
            return;
        }
        try (FileChannel names = FileChannel.open(directory, StandardOpenOption.READ)) {
            names.force(true);
        }
    }
}
