// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.weights;

import io.nereid.base.ServingException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Reads where the weights are in a file of {@code torch.save}: a zip archive (APPNOTE 6.3.10 of PKWARE) of stored entries, with a pickle
 * that describes the tensors, {@code data.pkl}, and an entry for the bytes of each storage. Stateless.
 */
final class TorchCheckpoint {
    private static final int END_OF_DIRECTORY = 0x06054b50;
    private static final int END_OF_DIRECTORY_64 = 0x06064b50;
    private static final int LOCATOR_64 = 0x07064b50;
    private static final int ENTRY = 0x02014b50;
    private static final int LOCAL = 0x04034b50;
    private static final int END_BYTES = 22;
    private static final int END_64_BYTES = 56;
    private static final int LOCATOR_BYTES = 20;
    private static final int ENTRY_BYTES = 46;
    private static final int LOCAL_BYTES = 30;
    private static final int MOST_COMMENT = 0xffff;
    private static final int MOST_DIRECTORY = 64 << 20;
    private static final int MOST_PICKLE = 64 << 20;
    private static final long WIDE = 0xffffffffL;

    /** An entry of the archive: the position of its local header, and its size. */
    record Entry(long header, long size) {}

    private final Path file;
    private final FileChannel channel;
    private final long size;
    private final Map<String, Entry> entries = new LinkedHashMap<>();

    private TorchCheckpoint(Path file, FileChannel channel) throws IOException {
        this.file = file;
        this.channel = channel;
        this.size = channel.size();
    }

    static Map<String, WeightTensor> read(Path file) throws IOException {
        try (FileChannel channel = FileChannel.open(file)) {
            TorchCheckpoint archive = new TorchCheckpoint(file, channel);
            archive.directory();
            String pickle = null;
            for (String name : archive.entries.keySet()) {
                if (name.equals("data.pkl") || name.endsWith("/data.pkl")) {
                    pickle = name;
                }
            }
            if (pickle == null) {
                throw archive.rejected("it has no data.pkl");
            }
            String folder = pickle.substring(0, pickle.length() - "data.pkl".length());
            Entry order = archive.entries.get(folder + "byteorder");
            if (order != null
                    && !new String(archive.content(order, 16), StandardCharsets.US_ASCII)
                            .strip()
                            .equals("little")) {
                throw archive.rejected("its numbers are not little-endian");
            }
            Entry entry = archive.entries.get(pickle);
            byte[] description = archive.content(entry == null ? new Entry(0, 0) : entry, MOST_PICKLE);
            return archive.tensors(folder, description);
        }
    }

    private Map<String, WeightTensor> tensors(String folder, byte[] description) throws IOException {
        Map<String, StateDictionary.Weight> weights;
        try {
            weights = new StateDictionary(description).read();
        } catch (ServingException e) {
            throw rejected("its data.pkl " + e.getMessage());
        }
        Map<String, WeightTensor> tensors = new LinkedHashMap<>();
        for (Map.Entry<String, StateDictionary.Weight> e : weights.entrySet()) {
            StateDictionary.Weight weight = e.getValue();
            Entry storage = entries.get(folder + "data/" + weight.storage());
            if (storage == null) {
                throw rejected("it lacks the bytes of tensor '" + e.getKey() + "'");
            }
            long begin = weight.offset() * weight.type().bytes();
            if (begin + weight.bytes() > storage.size) {
                throw rejected("tensor '" + e.getKey() + "' has " + weight.bytes() + " bytes from " + begin
                        + ", and its storage has " + storage.size);
            }
            tensors.put(
                    e.getKey(),
                    new WeightTensor(
                            e.getKey(), file, weight.type(), weight.shape(), data(storage) + begin, weight.bytes()));
        }
        return tensors;
    }

    private ServingException rejected(String why) {
        return SafetensorsHeader.rejected(file, why);
    }

    private ByteBuffer bytes(long from, int count) throws IOException {
        if (from < 0 || count < 0 || from > size - count) {
            throw rejected("it ends before byte " + (from + count) + " of its archive");
        }
        ByteBuffer buffer = ByteBuffer.allocate(count).order(ByteOrder.LITTLE_ENDIAN);
        long at = from;
        while (buffer.hasRemaining()) {
            int n = channel.read(buffer, at);
            if (n < 0) {
                throw rejected("it became shorter while it was read");
            }
            at += n;
        }
        return buffer.flip();
    }

    private void directory() throws IOException {
        ByteBuffer tail =
                bytes(Math.max(0, size - END_BYTES - MOST_COMMENT), (int) Math.min(size, END_BYTES + MOST_COMMENT));
        int at = tail.limit() - END_BYTES;
        while (at >= 0 && tail.getInt(at) != END_OF_DIRECTORY) {
            at--;
        }
        if (at < 0) {
            throw ServingException.invalidArgument(
                    "model file '" + file
                            + "' cannot be loaded: it is not a zip archive, as torch.save writes it since PyTorch 1.6",
                    "write the weights as safetensors: python3 -c \"from transformers import AutoModel;"
                            + " AutoModel.from_pretrained('FOLDER').save_pretrained('FOLDER')\"");
        }
        long count = tail.getShort(at + 10) & 0xffff;
        long length = tail.getInt(at + 12) & WIDE;
        long start = tail.getInt(at + 16) & WIDE;
        if (at >= LOCATOR_BYTES && tail.getInt(at - LOCATOR_BYTES) == LOCATOR_64) {
            ByteBuffer end = bytes(tail.getLong(at - LOCATOR_BYTES + 8), END_64_BYTES);
            if (end.getInt(0) != END_OF_DIRECTORY_64) {
                throw rejected("the end of its archive is damaged");
            }
            count = end.getLong(32);
            length = end.getLong(40);
            start = end.getLong(48);
        }
        if (length < 0 || length > MOST_DIRECTORY || count < 0 || count * ENTRY_BYTES > length) {
            throw rejected("its archive has a directory of " + length + " bytes for " + count + " entries");
        }
        ByteBuffer directory = bytes(start, (int) length);
        for (long i = 0; i < count; i++) {
            entry(directory);
        }
    }

    private void entry(ByteBuffer in) {
        int at = in.position();
        if (in.remaining() < ENTRY_BYTES || in.getInt(at) != ENTRY) {
            throw rejected("the directory of its archive is damaged");
        }
        int method = in.getShort(at + 10);
        long stored = in.getInt(at + 20) & WIDE;
        long whole = in.getInt(at + 24) & WIDE;
        int nameLength = in.getShort(at + 28) & 0xffff;
        int extraLength = in.getShort(at + 30) & 0xffff;
        int commentLength = in.getShort(at + 32) & 0xffff;
        long header = in.getInt(at + 42) & WIDE;
        if (in.remaining() < ENTRY_BYTES + nameLength + extraLength + commentLength) {
            throw rejected("the directory of its archive is damaged");
        }
        String name = new String(in.array(), in.arrayOffset() + at + ENTRY_BYTES, nameLength, StandardCharsets.UTF_8);
        int extra = at + ENTRY_BYTES + nameLength;
        int end = extra + extraLength;
        while (extra + 4 <= end) {
            int kind = in.getShort(extra) & 0xffff;
            int next = extra + 4 + (in.getShort(extra + 2) & 0xffff);
            int field = extra + 4;
            if (kind == 1 && next <= end) {
                // The sizes of 64 bits are there only where those of 32 bits are too small.
                if (whole == WIDE && field + 8 <= next) {
                    whole = in.getLong(field);
                    field += 8;
                }
                if (stored == WIDE && field + 8 <= next) {
                    stored = in.getLong(field);
                    field += 8;
                }
                if (header == WIDE && field + 8 <= next) {
                    header = in.getLong(field);
                }
            }
            extra = next;
        }
        if (method != 0 || stored != whole) {
            throw rejected("its entry '" + name + "' is compressed, which torch.save does not do");
        }
        entries.put(name, new Entry(header, whole));
        in.position(at + ENTRY_BYTES + nameLength + extraLength + commentLength);
    }

    /** The position of the first byte of an entry. */
    private long data(Entry entry) throws IOException {
        ByteBuffer local = bytes(entry.header, LOCAL_BYTES);
        long begin = entry.header + LOCAL_BYTES + (local.getShort(26) & 0xffff) + (local.getShort(28) & 0xffff);
        if (local.getInt(0) != LOCAL || entry.size < 0 || entry.size > size || begin > size - entry.size) {
            throw rejected("an entry of its archive is damaged");
        }
        return begin;
    }

    private byte[] content(@Nullable Entry entry, int most) throws IOException {
        if (entry == null || entry.size > most) {
            throw rejected("an entry of its archive is too large");
        }
        return bytes(data(entry), (int) entry.size).array();
    }
}
