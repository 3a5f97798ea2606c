// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.archive;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/** Reads tar archives: the old format, ustar, GNU's long names and POSIX's extended headers. Confined to one thread. */
final class TarReader {
    private static final int BLOCK = 512;
    private static final int LONG_HEADER = 1 << 20;

    private final InputStream in;
    private final String where;
    private final int most;
    private final byte[] block = new byte[BLOCK];
    private final Map<String, String> always = new HashMap<>();

    TarReader(InputStream in, String where, int most) {
        this.in = in;
        this.where = where;
        this.most = most;
    }

    /** Extracts all entries into a directory. */
    void readAll(ExtractionDirectory tree) throws IOException {
        Map<String, String> next = new HashMap<>();
        int entries = 0;
        boolean any = false;
        while (readBlock()) {
            if (zero()) {
                return;
            }
            checkSum(any);
            any = true;
            if (++entries > most * 2L) {
                throw ContentManifest.unsafe(where, "it has more than " + most + " entries");
            }
            char type = (char) (block[156] & 0xff);
            long size = number(124, 12);
            if (type == 'x' || type == 'g') {
                extended(header(size), type == 'g' ? always : next);
                continue;
            }
            if (type == 'L' || type == 'K') {
                next.put(type == 'L' ? "path" : "linkpath", cString(header(size)));
                continue;
            }
            Map<String, String> fields = new HashMap<>(always);
            fields.putAll(next);
            next.clear();
            entry(tree, type, size, fields);
        }
        if (!any) {
            throw new EOFException("no tar");
        }
    }

    private void entry(ExtractionDirectory tree, char type, long headerSize, Map<String, String> fields)
            throws IOException {
        for (String field : fields.keySet()) {
            if (field.startsWith("GNU.sparse.")) {
                throw ContentManifest.unsafe(where, "it holds sparse files, which are not supported");
            }
        }
        String name = fields.getOrDefault("path", name());
        String target = fields.getOrDefault("linkpath", cString(157, 100));
        long size = fields.containsKey("size") ? decimal(fields.getOrDefault("size", "")) : headerSize;
        boolean executable = (number(100, 8) & 0100) != 0;
        switch (type) {
            case '0', '\0', '7' -> {
                if (name.endsWith("/") && size == 0) {
                    tree.directory(name);
                    return;
                }
                Content content = new Content(size);
                tree.file(name, content, size, executable);
                content.skipRest();
            }
            case '5' -> {
                tree.directory(name);
                new Content(size).skipRest();
            }
            case '2' -> tree.link(name, target);
            case '1' -> tree.hardLink(name, target);
            case '3', '4' -> throw ContentManifest.unsafe(where, "'" + shown(name) + "' is a device");
            case '6' -> throw ContentManifest.unsafe(where, "'" + shown(name) + "' is a pipe");
            case 'S' -> throw ContentManifest.unsafe(where, "it holds sparse files, which are not supported");
            default ->
                throw ContentManifest.unsafe(
                        where, "'" + shown(name) + "' is of a kind that is not supported ('" + shown("" + type) + "')");
        }
    }

    static String shown(String name) {
        String line = name.replaceAll("\\p{Cntrl}", "?");
        return line.length() > 200 ? line.substring(0, 200) + "..." : line;
    }

    private String name() {
        String name = cString(0, 100);
        boolean posix = cString(257, 5).equals("ustar") && block[262] == 0;
        String prefix = posix ? cString(345, 155) : "";
        return prefix.isEmpty() ? name : prefix + "/" + name;
    }

    private boolean readBlock() throws IOException {
        int n = in.readNBytes(block, 0, BLOCK);
        if (n == 0) {
            return false;
        }
        if (n < BLOCK) {
            throw new EOFException("a header is cut short");
        }
        return true;
    }

    private boolean zero() {
        for (byte b : block) {
            if (b != 0) {
                return false;
            }
        }
        return true;
    }

    private void checkSum(boolean any) throws IOException {
        long sum = 0;
        for (int i = 0; i < BLOCK; i++) {
            sum += i >= 148 && i < 156 ? ' ' : block[i] & 0xff;
        }
        if (sum != number(148, 8)) {
            throw new EOFException(any ? "a header is damaged" : "no tar");
        }
    }

    private byte[] header(long size) throws IOException {
        if (size < 0 || size > LONG_HEADER) {
            throw ContentManifest.unsafe(where, "it has a header of " + size + " bytes");
        }
        byte[] header = in.readNBytes((int) size);
        if (header.length < size) {
            throw new EOFException("a header is cut short");
        }
        in.skipNBytes(padding(size));
        return header;
    }

    /** Lines of {@code LENGTH KEY=VALUE}. */
    private void extended(byte[] header, Map<String, String> fields) throws IOException {
        int at = 0;
        while (at < header.length && header[at] != 0) {
            int space = at;
            while (space < header.length && header[space] != ' ') {
                space++;
            }
            long length = decimal(new String(header, at, space - at, StandardCharsets.US_ASCII));
            if (length < space - at + 3 || length > header.length - at) {
                throw new EOFException("an extended header is damaged");
            }
            String line = new String(header, space + 1, (int) (at + length - space - 2), StandardCharsets.UTF_8);
            int equals = line.indexOf('=');
            if (equals < 0) {
                throw new EOFException("an extended header is damaged");
            }
            fields.put(line.substring(0, equals), line.substring(equals + 1));
            at += (int) length;
        }
    }

    private static long decimal(String text) throws IOException {
        try {
            long value = Long.parseLong(text);
            if (value >= 0) {
                return value;
            }
        } catch (NumberFormatException e) {
            // Reported below.
        }
        throw new EOFException("a number is damaged");
    }

    /** A number in octal digits, or in GNU's base-256 encoding if the high bit of the first byte is set. */
    private long number(int at, int length) throws IOException {
        if ((block[at] & 0x80) != 0) {
            long value = block[at] & 0x7f;
            for (int i = 1; i < length; i++) {
                if (value >>> 55 != 0) {
                    throw new EOFException("a number is damaged");
                }
                value = value << 8 | block[at + i] & 0xff;
            }
            return value;
        }
        long value = 0;
        boolean begun = false;
        for (int i = 0; i < length; i++) {
            int c = block[at + i];
            if (c == 0 || c == ' ') {
                if (begun) {
                    break;
                }
                continue;
            }
            if (c < '0' || c > '7') {
                throw new EOFException("a number is damaged");
            }
            begun = true;
            value = value << 3 | c - '0';
        }
        return value;
    }

    private String cString(int at, int length) {
        int end = at;
        while (end < at + length && block[end] != 0) {
            end++;
        }
        return new String(block, at, end - at, StandardCharsets.UTF_8);
    }

    private static String cString(byte[] bytes) {
        int end = 0;
        while (end < bytes.length && bytes[end] != 0) {
            end++;
        }
        return new String(bytes, 0, end, StandardCharsets.UTF_8);
    }

    private static long padding(long size) {
        return (BLOCK - size % BLOCK) % BLOCK;
    }

    /** The content of one entry. */
    private final class Content extends InputStream {
        private final long size;
        private long left;

        Content(long size) {
            this.size = size;
            this.left = size;
        }

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public int read(byte[] bytes, int from, int length) throws IOException {
            if (left == 0) {
                return -1;
            }
            int n = in.read(bytes, from, (int) Math.min(length, left));
            if (n < 0) {
                throw new EOFException("an entry is cut short");
            }
            left -= n;
            return n;
        }

        void skipRest() throws IOException {
            in.skipNBytes(left + padding(size));
            left = 0;
        }
    }
}
