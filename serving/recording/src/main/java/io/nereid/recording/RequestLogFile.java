// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.recording;

import io.nereid.tfdata.TfRecordFile;
import java.io.IOException;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A TFRecord file that is being written. Its name ends in {@code .part} until it is complete and on the disk, so that a
 * reader never sees an incomplete file. Confined to the writer's thread.
 */
final class RequestLogFile {
    private static final Logger LOG = LoggerFactory.getLogger(RequestLogFile.class);

    /** Creates files; replaced in tests. */
    interface Opener {
        /**
         * Creates a file.
         *
         * @param name its path once it is complete
         * @throws FileAlreadyExistsException when a file of that name exists
         */
        RequestLogFile open(String name, long nowNanos) throws IOException;
    }

    private final Path name;
    private final Path part;
    private final FileChannel channel;
    private final TfRecordFile.Writer writer;
    private final long openedNanos;
    private int records;
    private long flushedBytes;
    private int flushedRecords;

    RequestLogFile(Path name, Path part, FileChannel channel, TfRecordFile.Writer writer, long openedNanos) {
        this.name = name;
        this.part = part;
        this.channel = channel;
        this.writer = writer;
        this.openedNanos = openedNanos;
    }

    static RequestLogFile create(String name, long nowNanos) throws IOException {
        Path path = Path.of(name);
        Path directory = path.toAbsolutePath().getParent();
        if (directory != null) {
            try {
                Files.createDirectories(directory);
            } catch (FileAlreadyExistsException e) {
                // Another exception type: the caller tries other names after FileAlreadyExistsException.
                throw new IOException("'" + e.getFile() + "' is not a directory", e);
            }
        }
        if (Files.exists(path)) {
            throw new FileAlreadyExistsException(name);
        }
        Path part = Path.of(name + ".part");
        FileChannel channel = FileChannel.open(part, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
        return new RequestLogFile(
                path, part, channel, new TfRecordFile.Writer(Channels.newOutputStream(channel)), nowNanos);
    }

    void write(byte[] array, int length) throws IOException {
        writer.write(array, 0, length);
        records++;
    }

    void flush() throws IOException {
        if (flushedRecords != records) {
            writer.flush();
            flushedRecords = records;
            flushedBytes = writer.bytes();
        }
    }

    /** Writes everything to the disk, then renames the file to its final name. */
    void complete() throws IOException {
        flush();
        channel.force(true);
        writer.close();
        Files.move(part, name, StandardCopyOption.ATOMIC_MOVE);
    }

    /** Closes the file after an error: truncates it to the records that were flushed, and renames it if possible. */
    void abandon() {
        try {
            if (flushedRecords > 0) {
                channel.truncate(flushedBytes);
                channel.force(true);
                channel.close();
                Files.move(part, name, StandardCopyOption.ATOMIC_MOVE);
            } else {
                channel.close();
                Files.deleteIfExists(part);
            }
        } catch (IOException e) {
            LOG.warn("'{}' is left incomplete: {}", part, e.toString());
        }
    }

    int records() {
        return records;
    }

    long bytes() {
        return writer.bytes();
    }

    long openedNanos() {
        return openedNanos;
    }
}
