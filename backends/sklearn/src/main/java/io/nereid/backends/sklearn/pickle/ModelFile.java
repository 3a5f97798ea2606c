// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.pickle;

import io.nereid.base.ServingException;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.GZIPInputStream;
import java.util.zip.InflaterInputStream;

/**
 * Reads a model file of any supported format: pickle or joblib, plain or compressed with gzip or zlib, or a skops
 * archive. The format is recognised by the first bytes, not by the file name. Stateless.
 */
public final class ModelFile {
    private static final int BUFFER = 1 << 16;

    private ModelFile() {}

    /**
     * Returns the content of the file as data: Python values, {@link NdArray}s and {@link PyObject}s.
     *
     * @throws ServingException INVALID_ARGUMENT for a file that cannot be read; the message leaves the file name to the
     *     caller
     */
    public static Object read(Path file, MemoryLimit memory) {
        if (isZip(file)) {
            return SkopsReader.read(file, memory);
        }
        try (InputStream raw = new BufferedInputStream(Files.newInputStream(file), BUFFER)) {
            return read(raw, memory);
        } catch (IOException e) {
            throw UnsupportedModel.corrupt("reading it failed: " + e.getClass().getSimpleName());
        }
    }

    /** As {@link #read(Path, MemoryLimit)}, from a stream that supports mark and reset. */
    static Object read(InputStream raw, MemoryLimit memory) throws IOException {
        raw.mark(16);
        byte[] head = raw.readNBytes(6);
        raw.reset();
        if (head.length == 0) {
            throw UnsupportedModel.corrupt("it is empty");
        }
        InputStream in = raw;
        if (starts(head, 0x1f, 0x8b)) {
            in = new BufferedInputStream(gzip(raw), BUFFER);
            // A zlib header: deflate with a 32 KiB window, and the two bytes are a multiple of 31 (RFC 1950).
        } else if (head[0] == 0x78 && head.length > 1 && ((head[0] & 0xff) * 256 + (head[1] & 0xff)) % 31 == 0) {
            in = new BufferedInputStream(new InflaterInputStream(raw, new java.util.zip.Inflater(), BUFFER), BUFFER);
        } else {
            String foreign = foreign(head);
            if (!foreign.isEmpty()) {
                throw ServingException.invalidArgument(
                        "it is " + foreign + ", which is not supported",
                        "save the model uncompressed, or with joblib.dump(model, path, compress=('zlib', 3))");
            }
        }
        return new PickleReader(new ByteSource(in, memory)).read();
    }

    private static boolean isZip(Path file) {
        try (InputStream in = Files.newInputStream(file)) {
            return starts(in.readNBytes(4), 'P', 'K', 3, 4);
        } catch (IOException e) {
            return false;
        }
    }

    private static InputStream gzip(InputStream raw) {
        try {
            return new GZIPInputStream(raw, BUFFER);
        } catch (IOException e) {
            throw UnsupportedModel.corrupt("its compressed data is damaged");
        }
    }

    private static String foreign(byte[] head) {
        if (starts(head, 'B', 'Z', 'h')) {
            return "compressed with bzip2";
        }
        if (starts(head, 0xfd, '7', 'z', 'X', 'Z')) {
            return "compressed with xz";
        }
        if (starts(head, 0x5d, 0)) {
            return "compressed with lzma";
        }
        if (starts(head, 0x04, 0x22, 0x4d, 0x18)) {
            return "compressed with lz4";
        }
        if (starts(head, 0x28, 0xb5, 0x2f, 0xfd)) {
            return "compressed with zstandard";
        }
        if (starts(head, 'Z', 'F')) {
            return "a file of joblib before 0.10";
        }
        if (starts(head, 'P', 'K', 3, 4)) {
            return "a zip archive (of skops or PyTorch?)";
        }
        return starts(head, 0x89, 'H', 'D', 'F') ? "an HDF5 file" : "";
    }

    private static boolean starts(byte[] head, int... bytes) {
        for (int i = 0; i < bytes.length; i++) {
            if (i >= head.length || (head[i] & 0xff) != bytes[i]) {
                return false;
            }
        }
        return true;
    }
}
