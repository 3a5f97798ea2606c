// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.object;

import io.nereid.storage.spi.CancellationToken;
import io.nereid.storage.spi.Checksum;
import io.nereid.storage.spi.ChecksumAlgorithm;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.InvalidKeyException;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.zip.CRC32C;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.jspecify.annotations.Nullable;

/** Computes digests and checksums of texts and files. Stateless. */
public final class ContentDigests {
    private static final int CHUNK = 1 << 16;

    private ContentDigests() {}

    public static MessageDigest of(String algorithm) {
        try {
            return MessageDigest.getInstance(algorithm);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(algorithm + " is in every JDK", e);
        }
    }

    public static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }

    public static String sha256(String text) {
        return hex(of("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8)));
    }

    public static String sha256(byte[] bytes) {
        return hex(of("SHA-256").digest(bytes));
    }

    public static byte[] hmac(byte[] key, String text) {
        return hmac(key, text.getBytes(StandardCharsets.UTF_8));
    }

    public static byte[] hmac(byte[] key, byte[] text) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(key, "HmacSHA256"));
            return mac.doFinal(text);
        } catch (InvalidKeyException e) {
            throw new IllegalArgumentException("the key is empty", e);
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("HmacSHA256 is in every JDK", e);
        }
    }

    /**
     * The digests of a file. Immutable.
     *
     * @param sha256 of the content
     * @param found the digest by the expected checksum's algorithm, or null without an expected checksum
     */
    public record Read(String sha256, @Nullable String found) {}

    /** Reads a file once and computes both digests. */
    public static Read read(Path file, @Nullable Checksum wanted, CancellationToken cancel) throws IOException {
        MessageDigest sha256 = of("SHA-256");
        ChecksumAlgorithm algorithm = wanted == null ? ChecksumAlgorithm.SHA256 : wanted.algorithm();
        MessageDigest other = switch (algorithm) {
            case MD5, TAG_MD5 -> of("MD5");
            case GIT_BLOB -> of("SHA-1");
            case SHA256, CRC32C -> null;
        };
        if (algorithm == ChecksumAlgorithm.GIT_BLOB && other != null) {
            other.update(("blob " + Files.size(file) + "\0").getBytes(StandardCharsets.US_ASCII));
        }
        CRC32C crc = algorithm == ChecksumAlgorithm.CRC32C ? new CRC32C() : null;
        byte[] chunk = new byte[CHUNK];
        try (InputStream in = Files.newInputStream(file)) {
            for (int n = in.read(chunk); n >= 0; n = in.read(chunk)) {
                cancel.check();
                sha256.update(chunk, 0, n);
                if (other != null) {
                    other.update(chunk, 0, n);
                }
                if (crc != null) {
                    crc.update(chunk, 0, n);
                }
            }
        }
        String content = hex(sha256.digest());
        if (wanted == null) {
            return new Read(content, null);
        }
        if (crc != null) {
            return new Read(content, HexFormat.of().toHexDigits((int) crc.getValue()));
        }
        return new Read(content, other == null ? content : hex(other.digest()));
    }
}
