// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.controlplane;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import java.util.HexFormat;
import org.jspecify.annotations.Nullable;

/**
 * The token by which the owner of a control plane's directory is known to its server: a file that only its owner can
 * read. {@code nereid apply} and {@code nereid kubeconfig} on the same machine find it there. Stateless.
 */
public final class ControlToken {
    private static final String FILE = "control-token";
    private static final int BYTES = 32;

    private ControlToken() {}

    /** The file of a directory, which need not exist. */
    public static Path file(Path directory) {
        return directory.resolve(FILE);
    }

    /** The token of a directory; null when there is none, or the file cannot be read. */
    public static @Nullable String read(Path directory) {
        try {
            String token = Files.readString(directory.resolve(FILE)).strip();
            return token.isEmpty() ? null : token;
        } catch (IOException e) {
            return null;
        }
    }

    /**
     * The token of a directory, which is made if there is none.
     *
     * @throws ServingException FAILED_PRECONDITION when the file cannot be read or written
     */
    static String readOrCreate(Path directory) {
        Path file = directory.resolve(FILE);
        String before = read(directory);
        if (before != null) {
            return before;
        }
        try {
            Files.createDirectories(directory);
            byte[] random = new byte[BYTES];
            new SecureRandom().nextBytes(random);
            FileAttribute<?>[] owner =
                    directory.getFileSystem().supportedFileAttributeViews().contains("posix")
                            ? new FileAttribute<?>[] {
                                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"))
                            }
                            : new FileAttribute<?>[0];
            Path made = Files.createTempFile(directory, FILE, ".new", owner);
            Files.writeString(made, HexFormat.of().formatHex(random) + "\n", StandardCharsets.US_ASCII);
            try {
                // a link fails when the file exists, so of two servers that start at once one makes the token
                Files.createLink(file, made);
            } catch (FileAlreadyExistsException e) {
                String known = read(directory);
                if (known != null) {
                    return known;
                }
                throw e;
            } finally {
                Files.delete(made);
            }
            return Files.readString(file).strip();
        } catch (IOException e) {
            throw failure(file, e);
        }
    }

    private static ServingException failure(Path file, IOException e) {
        return ServingException.wrap(
                ErrorCode.FAILED_PRECONDITION,
                "the token of the control API '" + file + "' cannot be made or read: " + e.getMessage(),
                "check the owner and the mode of the file and its directory",
                e);
    }
}
