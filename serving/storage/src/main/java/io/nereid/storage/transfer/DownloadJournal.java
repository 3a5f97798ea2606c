// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.transfer;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashSet;
import java.util.Set;

/**
 * The log of parts that are completely on disk: a line {@code FILE PART .} for each, written after the part's bytes; a
 * line {@code FILE - .} removes all parts of a file. The dot marks a complete line, so that a line truncated by a crash
 * is ignored. Thread-safe: one lock.
 */
public final class DownloadJournal implements AutoCloseable {
    @GuardedBy("this") private final FileChannel file;

    @GuardedBy("this") private final Set<Long> parts = new HashSet<>();

    public DownloadJournal(Path path) throws IOException {
        if (Files.exists(path)) {
            for (String line :
                    Files.readString(path, StandardCharsets.ISO_8859_1).split("\n", -1)) {
                read(line);
            }
        }
        file = FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.WRITE, StandardOpenOption.APPEND);
        // Ends a line that a crash truncated, so that the next one starts on its own line.
        append("");
    }

    @GuardedBy("this") private void read(String line) {
        String[] words = line.split(" ");
        if (words.length != 3 || !words[2].equals(".")) {
            return;
        }
        try {
            int index = Integer.parseInt(words[0]);
            if (words[1].equals("-")) {
                parts.removeIf(part -> part >>> 32 == index);
            } else {
                parts.add(key(index, Integer.parseInt(words[1])));
            }
        } catch (NumberFormatException e) {
            // Not a valid line: ignored.
        }
    }

    private static long key(int index, int part) {
        return (long) index << 32 | part;
    }

    public synchronized boolean has(int index, int part) {
        return parts.contains(key(index, part));
    }

    public synchronized void add(int index, int part) throws IOException {
        append(index + " " + part + " .");
        parts.add(key(index, part));
    }

    public synchronized void forget(int index) throws IOException {
        if (parts.removeIf(part -> part >>> 32 == index)) {
            append(index + " - .");
        }
    }

    @GuardedBy("this") private void append(String line) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap((line + "\n").getBytes(StandardCharsets.ISO_8859_1));
        while (bytes.hasRemaining()) {
            file.write(bytes);
        }
    }

    @Override
    public synchronized void close() throws IOException {
        file.close();
    }
}
