// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.store;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.jspecify.annotations.Nullable;

/** Keeps a directory for one process; the system lets go of it when the process ends, however it does. Immutable. */
final class StoreLock implements AutoCloseable {
    private final FileChannel file;

    private StoreLock(FileChannel file) {
        this.file = file;
    }

    /**
     * Takes the directory.
     *
     * @throws ServingException FAILED_PRECONDITION when another process has it
     */
    static StoreLock take(Path directory) throws IOException {
        Path path = directory.resolve("lock");
        FileChannel file = FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
        @Nullable FileLock lock;
        try {
            lock = file.tryLock();
        } catch (OverlappingFileLockException e) {
            lock = null;
        } catch (IOException e) {
            file.close();
            throw e;
        }
        if (lock == null) {
            file.close();
            String owner = Files.readString(path).strip();
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "'" + directory + "' is used by another server"
                            + (owner.isEmpty() ? "" : " (process " + owner + ")"),
                    "stop that server, or give this one a directory of its own");
        }
        file.truncate(0);
        file.write(ByteBuffer.wrap((ProcessHandle.current().pid() + "\n").getBytes(StandardCharsets.US_ASCII)));
        return new StoreLock(file);
    }

    @Override
    public void close() throws IOException {
        file.close();
    }
}
