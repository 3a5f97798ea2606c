// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.store;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** Writes and syncs files. An interface, so that tests can simulate a full disk. Implementations are thread-safe. */
interface StoreFiles {
    /** The real file system. */
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

    /** Syncs the file: returns when all written bytes are durable. */
    void force(FileChannel file) throws IOException;

    /** Syncs the entries of a directory. Does nothing on Windows, where directories cannot be synced. */
    static void forceNames(Path directory) throws IOException {
        if (java.io.File.separatorChar == '\\') {
            return;
        }
        try (FileChannel names = FileChannel.open(directory, StandardOpenOption.READ)) {
            names.force(true);
        }
    }
}
