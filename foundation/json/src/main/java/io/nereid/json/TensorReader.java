// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json;

import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Reads arrays of one data type from a {@link JsonReader} into row-major little-endian bytes, without garbage per
 * element. Decimals are rounded to the nearest value of the type, ties to even. Integers must be whole numbers in
 * range (5.0 and 1e3 are whole). BOOL accepts true, false, 0 and 1; BYTES accepts strings. Confined to the reader's
 * thread.
 *
 * <pre>{@code
 * TensorReader tensors = new TensorReader(reader);             // reader stands before "[[1.5,2],[3,4]]"
 * Tensor t = tensors.readTensor("INPUT0", DataType.FP32, Shape.of(2, 2), new ByteSink(256));
 * }</pre>
 */
public final class TensorReader {
    private static final int STAGING_BYTES = 8192;

    private final JsonReader reader;
    private final ElementReader elements;
    private final byte[] staging = new byte[STAGING_BYTES];
    private final long[] dims = new long[64];
    private final long[] seen = new long[64];
    private int rank;
    private long count;

    /** Creates a reader whose BYTES elements are strings. */
    public TensorReader(JsonReader reader) {
        this(reader, false);
    }

    /**
     * Creates a reader.
     *
     * @param base64Objects whether a BYTES element may also be an object {@code {"b64":"..."}}
     */
    public TensorReader(JsonReader reader, boolean base64Objects) {
        this(reader, base64Objects, false);
    }

    /**
     * Creates a reader.
     *
     * @param base64Objects whether a BYTES element may also be an object {@code {"b64":"..."}}
     * @param overflow whether an FP32 element beyond the type's range becomes infinite instead of being rejected
     */
    public TensorReader(JsonReader reader, boolean base64Objects, boolean overflow) {
        this.reader = reader;
        this.elements = new ElementReader(reader, base64Objects, overflow);
    }

    /**
     * Sets whether a {@code null} is read as a missing value instead of being rejected: as NaN among elements of FP32 and
     * FP64, as an empty text among those of BYTES.
     *
     * @param whether asked when a {@code null} is met; null for never, which is the default
     */
    public void missing(@Nullable BooleanSupplier whether) {
        elements.missing(whether);
    }

    /**
     * Reads an array, flat or nested in any way, of exactly {@code count} elements of a fixed-size type into
     * {@code dst} at the absolute byte position {@code dstPos}. Position, limit and order of {@code dst} are ignored
     * and not changed, but the bytes must lie below its limit. Fastest into direct memory.
     *
     * @throws ServingException INVALID_ARGUMENT for malformed text, a value that the type cannot hold, or another
     *     count
     * @throws IndexOutOfBoundsException when {@code count} elements do not fit into {@code dst}
     */
    public void read(DataType type, ByteBuffer dst, int dstPos, long count) {
        int size = fixedSize(type);
        if (dstPos < 0 || count < 0 || count > (dst.limit() - dstPos) / size) {
            throw new IndexOutOfBoundsException(
                    count + " elements of " + type + " at " + dstPos + " of a buffer with limit " + dst.limit());
        }
        JsonReader r = reader;
        byte[] out = staging;
        int base = openArray(r);
        boolean fresh = true;
        int at = dstPos;
        long left = count;
        while (enterElements(r, base, fresh)) {
            if (left == 0) {
                throw r.error("the array holds more than the expected " + count + " elements, the next" + r.at(r.pos));
            }
            int bytes = elements.readRun(type, out, 0, (int) Math.min(STAGING_BYTES, left * size));
            dst.put(at, out, 0, bytes);
            at += bytes;
            left -= bytes / size;
            fresh = false;
        }
        if (left != 0) {
            throw wrongCount(count, count - left);
        }
    }

    /**
     * Reads an array of elements, flat or nested, as a new tensor, which the caller owns. The tensor is allocated
     * before the array is read: for untrusted input the caller must first verify that the text is long enough for the
     * shape.
     *
     * @param elements buffer for BYTES elements; its content is overwritten
     */
    public Tensor readTensor(String name, DataType type, Shape shape, ByteSink elements) {
        long count = shape.elementCount();
        if (type == DataType.BYTES) {
            elements.reset();
            readBytes(elements, count);
            MemoryRegion region = MemoryRegion.copyOf(elements.array(), 0, elements.length());
            return Tensor.over(name, type, shape, region, 0, elements.length());
        }
        Tensor made = Tensor.allocate(name, type, shape);
        boolean done = false;
        try {
            read(type, made.buffer(), 0, count);
            done = true;
            return made;
        } finally {
            if (!done) {
                made.close();
            }
        }
    }

    /**
     * Reads an array, flat or nested in any way, of exactly {@code count} strings and appends each to {@code dst} as a
     * 4-byte little-endian length and its UTF-8 bytes.
     *
     * @throws ServingException INVALID_ARGUMENT for malformed text, an element that is not a string, or another count
     */
    public void readBytes(ByteSink dst, long count) {
        JsonReader r = reader;
        int base = openArray(r);
        boolean fresh = true;
        long left = count;
        while (enterElements(r, base, fresh)) {
            if (left == 0) {
                throw r.error("the array holds more than the expected " + count + " elements, the next" + r.at(r.pos));
            }
            left -= elements.readBytesRun(dst, left);
            fresh = false;
        }
        if (left != 0) {
            throw wrongCount(count, count - left);
        }
    }

    /**
     * Reads a single value or a rectangular array of any rank and appends its elements to {@code dst}.
     * {@link #rank()}, {@link #dim(int)} and {@link #count()} then return the shape. The rank is fixed by the first
     * value; afterwards every value must lie at that depth, and every list of a level must have the size of the first
     * one of that level.
     *
     * @throws ServingException INVALID_ARGUMENT for malformed text, a value that the type cannot hold, or lists of
     *     unequal size
     */
    public void readNested(DataType type, ByteSink dst) {
        JsonReader r = reader;
        count = 0;
        rank = -1;
        Arrays.fill(dims, -1);
        r.skipSpace();
        if (r.buffer[r.pos] != '[') {
            rank = 0;
            readRunInto(type, dst, 1);
            count = 1;
            return;
        }
        int level = 0;
        int deepest = 0;
        boolean wanted = true;
        do {
            if (wanted) {
                int c = r.buffer[r.skipSpace()];
                if (c == '[') {
                    if (level == rank || level == dims.length) {
                        throw level == rank ? ragged(r.pos, "a list where a value is expected") : tooDeep();
                    }
                    if (level > 0) {
                        seen[level - 1]++;
                    }
                    r.enter();
                    r.pos++;
                    seen[level++] = 0;
                    deepest = Math.max(deepest, level);
                    wanted = r.buffer[r.skipSpace()] != ']';
                    continue;
                }
                if (rank < 0 && level == deepest) {
                    rank = level;
                } else if (level != rank) {
                    throw ragged(r.pos, "a value where a list is expected");
                }
                long n = readRunInto(type, dst, Long.MAX_VALUE);
                seen[level - 1] += n;
                count += n;
            }
            int c = r.buffer[r.skipSpace()];
            if (c == ',') {
                r.pos++;
                wanted = true;
            } else if (c == ']') {
                level--;
                if (dims[level] < 0) {
                    dims[level] = seen[level];
                } else if (dims[level] != seen[level]) {
                    throw ragged(r.pos, "expected size: " + dims[level] + ", found: " + seen[level]);
                }
                r.leave();
                wanted = false;
            } else {
                throw r.unexpected(r.pos, "',' or ']'");
            }
        } while (level > 0);
        rank = deepest;
    }

    /** Number of dimensions that the last {@link #readNested} found; 0 for a single value. */
    public int rank() {
        return rank;
    }

    /** Size of a dimension that the last {@link #readNested} found. */
    public long dim(int i) {
        if (i >= rank) {
            throw new IndexOutOfBoundsException("dimension " + i + " of rank " + rank);
        }
        return dims[i];
    }

    /** A copy of the dimensions that the last {@link #readNested} found. */
    public long[] dims() {
        return Arrays.copyOf(dims, rank);
    }

    /** Number of elements that the last {@link #readNested} found. */
    public long count() {
        return count;
    }

    private static int fixedSize(DataType type) {
        if (!type.isFixedSize()) {
            throw new IllegalArgumentException(type + " has no fixed size (expected: readBytes)");
        }
        return type.size();
    }

    private static int openArray(JsonReader r) {
        if (r.buffer[r.skipSpace()] != '[') {
            throw r.unexpected(r.pos, "an array");
        }
        int base = r.depth();
        r.enter();
        r.pos++;
        return base;
    }

    /**
     * Skips commas and brackets up to the next element. Returns false when the array that began at depth {@code base}
     * has ended.
     *
     * @param fresh whether the position is behind an opening bracket, not behind an element
     */
    private static boolean enterElements(JsonReader r, int base, boolean fresh) {
        byte[] b = r.buffer;
        boolean opened = fresh;
        for (; ; ) {
            int c = b[r.skipSpace()];
            if (c == ']') {
                r.leave();
                opened = false;
                if (r.depth() == base) {
                    return false;
                }
                continue;
            }
            if (!opened) {
                if (c != ',') {
                    throw r.unexpected(r.pos, "',' or ']'");
                }
                r.pos++;
                c = b[r.skipSpace()];
            }
            if (c != '[') {
                return true;
            }
            r.enter();
            r.pos++;
            opened = true;
        }
    }

    private long readRunInto(DataType type, ByteSink dst, long limit) {
        if (type == DataType.BYTES) {
            return elements.readBytesRun(dst, limit);
        }
        int size = type.size();
        dst.ensureWritable(16 * size);
        int from = dst.length();
        int room = dst.array().length - from;
        int bytes = elements.readRun(type, dst.array(), from, limit == 1 ? size : room - room % size);
        dst.advanceTo(from + bytes);
        return bytes / size;
    }

    private ServingException wrongCount(long expected, long found) {
        return reader.error("the array that ends" + reader.at(reader.pos) + " holds " + found + " elements (expected: "
                + expected + ")");
    }

    private ServingException ragged(int at, String what) {
        return reader.error("Encountered list at unexpected size: " + what + reader.at(at)
                + " (expected: lists of one size at each level)");
    }

    private ServingException tooDeep() {
        return reader.error("JSON nesting depth exceeds maximum allowed (" + dims.length + " dimensions of a tensor)"
                + reader.at(reader.pos));
    }
}
