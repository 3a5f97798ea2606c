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

/**
 * An exclusive lock on a directory. The operating system releases it when the process exits, even after a crash.
 * Immutable.
 */
final class DirectoryLock implements AutoCloseable {
    private final FileChannel file;

    private DirectoryLock(FileChannel file) {
        this.file = file;
    }

    /**
     * Acquires the lock.
     *
     * @throws ServingException FAILED_PRECONDITION when another process holds it
     */
    static DirectoryLock take(Path directory) throws IOException {
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
        return new DirectoryLock(file);
    }

    @Override
    public void close() throws IOException {
        file.close();
    }
}
