// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.connection;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.EnumSet;
import java.util.Set;

/** Writes files that hold secrets: only their owner can read them, from the first byte on. Stateless. */
public final class OwnerOnlyFile {
    private static final Set<PosixFilePermission> OTHERS = EnumSet.of(
            PosixFilePermission.GROUP_READ,
            PosixFilePermission.GROUP_WRITE,
            PosixFilePermission.OTHERS_READ,
            PosixFilePermission.OTHERS_WRITE);

    private OwnerOnlyFile() {}

    /**
     * Replaces a file as a whole.
     *
     * @throws ServingException FAILED_PRECONDITION when it cannot be written
     */
    public static void write(Path file, String content) {
        Path target = file.toAbsolutePath();
        Path directory = target.getParent();
        if (directory == null) {
            throw ServingException.invalidArgument("'" + file + "' is not a file (expected: the path of a file)");
        }
        try {
            Files.createDirectories(directory);
            FileAttribute<?>[] owner = posix(directory)
                    ? new FileAttribute<?>[] {
                        PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"))
                    }
                    : new FileAttribute<?>[0];
            Path made = Files.createTempFile(directory, "." + target.getFileName(), ".new", owner);
            try {
                Files.writeString(made, content);
                Files.move(made, target, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
            } finally {
                Files.deleteIfExists(made);
            }
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION, "cannot write '" + file + "': " + e.getMessage(), e);
        }
    }

    /** Whether others than the owner can read or write a file; false when there is none. */
    public static boolean isOpen(Path file) {
        return has(file, OTHERS);
    }

    /** Whether others than the owner can write a file; false when there is none. */
    public static boolean isWritableByOthers(Path file) {
        return has(file, EnumSet.of(PosixFilePermission.GROUP_WRITE, PosixFilePermission.OTHERS_WRITE));
    }

    private static boolean has(Path file, Set<PosixFilePermission> any) {
        try {
            if (!posix(file)) {
                return false;
            }
            Set<PosixFilePermission> mode = EnumSet.noneOf(PosixFilePermission.class);
            mode.addAll(Files.getPosixFilePermissions(file));
            mode.retainAll(any);
            return !mode.isEmpty();
        } catch (IOException e) {
            return false;
        }
    }

    private static boolean posix(Path path) {
        return path.getFileSystem().supportedFileAttributeViews().contains("posix");
    }
}
