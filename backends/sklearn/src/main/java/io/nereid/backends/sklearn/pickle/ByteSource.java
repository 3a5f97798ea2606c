// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.pickle;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.zip.ZipException;

/**
 * The uncompressed bytes of a file, read sequentially, with I/O errors reported as errors of the model file. Confined
 * to one thread.
 */
final class ByteSource {
    private static final int MAX_LINE = 1 << 16;

    private final InputStream in;
    private final MemoryLimit memory;

    ByteSource(InputStream in, MemoryLimit memory) {
        this.in = in;
        this.memory = memory;
    }

    int read() {
        try {
            int b = in.read();
            if (b < 0) {
                throw truncated();
            }
            return b;
        } catch (EOFException e) {
            throw truncated();
        } catch (IOException e) {
            throw damaged(e);
        }
    }

    /**
     * Reads {@code count} bytes. Memory grows with the bytes that are there, not with the count, so that a damaged
     * length cannot exhaust the heap.
     */
    byte[] read(long count) {
        if (count < 0 || count > Integer.MAX_VALUE - 64) {
            throw UnsupportedModel.corrupt("a value of " + Long.toUnsignedString(count) + " bytes is too large");
        }
        memory.charge(count + 16);
        try {
            byte[] bytes = in.readNBytes((int) count);
            if (bytes.length != count) {
                throw truncated();
            }
            return bytes;
        } catch (EOFException e) {
            throw truncated();
        } catch (IOException e) {
            throw damaged(e);
        }
    }

    /** Reads a little-endian unsigned integer of up to 8 bytes. */
    long number(int bytes) {
        long value = 0;
        for (int i = 0; i < bytes; i++) {
            value |= (long) read() << (8 * i);
        }
        return value;
    }

    /** Reads UTF-8 text up to the next line feed, which is consumed. */
    String line() {
        java.io.ByteArrayOutputStream line = new java.io.ByteArrayOutputStream();
        for (int b = read(); b != '\n'; b = read()) {
            line.write(b);
            if (line.size() > MAX_LINE) {
                throw UnsupportedModel.corrupt("a line is longer than " + MAX_LINE + " bytes");
            }
        }
        memory.charge(line.size() * 2L + 40);
        return line.toString(StandardCharsets.UTF_8);
    }

    MemoryLimit memory() {
        return memory;
    }

    private static RuntimeException truncated() {
        return UnsupportedModel.corrupt("the file is truncated");
    }

    private static RuntimeException damaged(IOException e) {
        return UnsupportedModel.corrupt(
                e instanceof ZipException ? "its compressed data is damaged" : "reading it failed: " + e.getMessage());
    }
}
