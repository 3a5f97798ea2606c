// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.zip.GZIPOutputStream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;

/** Creates archives, also invalid ones that tools do not create. Confined to one thread. */
public final class Archives {
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();

    public static byte[] gzip(byte[] bytes) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (GZIPOutputStream gzip = new GZIPOutputStream(out)) {
            gzip.write(bytes);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
        return out.toByteArray();
    }

    /** A zip of names and contents in turn. */
    public static byte[] zip(String... namesAndContents) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (ZipOutputStream zip = new ZipOutputStream(out)) {
            for (int i = 0; i < namesAndContents.length; i += 2) {
                zip.putNextEntry(new ZipEntry(namesAndContents[i]));
                zip.write(namesAndContents[i + 1].getBytes(StandardCharsets.UTF_8));
                zip.closeEntry();
            }
        } catch (IOException e) {
            throw new AssertionError(e);
        }
        return out.toByteArray();
    }

    public Archives file(String name, String content) {
        return entry(name, '0', "", content.getBytes(StandardCharsets.UTF_8));
    }

    public Archives link(String name, String target) {
        return entry(name, '2', target, new byte[0]);
    }

    public Archives entry(String name, char type, String target, byte[] content) {
        byte[] header = new byte[512];
        put(header, 0, name);
        put(header, 100, "0000644");
        put(header, 124, String.format(java.util.Locale.ROOT, "%011o", content.length));
        put(header, 136, "00000000000");
        header[156] = (byte) type;
        put(header, 157, target);
        put(header, 257, "ustar");
        put(header, 263, "00");
        for (int i = 148; i < 156; i++) {
            header[i] = ' ';
        }
        int sum = 0;
        for (byte b : header) {
            sum += b & 0xff;
        }
        put(header, 148, String.format(java.util.Locale.ROOT, "%06o", sum));
        header[154] = 0;
        out.writeBytes(header);
        out.writeBytes(content);
        out.writeBytes(new byte[(512 - content.length % 512) % 512]);
        return this;
    }

    private static void put(byte[] header, int at, String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        System.arraycopy(bytes, 0, header, at, bytes.length);
    }

    public byte[] tar() {
        byte[] bytes = out.toByteArray();
        return java.util.Arrays.copyOf(bytes, bytes.length + 1024);
    }
}
