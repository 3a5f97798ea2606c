// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.object;

import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.List;

/** Validates paths from stores and archives. Stateless. */
public final class ObjectPaths {
    private ObjectPaths() {}

    /**
     * Returns the relative path without empty and dot segments; rejects a path that leaves the directory. Empty for the
     * directory itself.
     */
    public static String safe(String name, String where) {
        if (name.indexOf('\0') >= 0 || name.indexOf('\\') >= 0) {
            throw unsafe(name, where, "has a backslash or a NUL");
        }
        if (name.startsWith("/")) {
            throw unsafe(name, where, "is absolute");
        }
        List<String> kept = new ArrayList<>();
        for (String segment : name.split("/")) {
            if (segment.equals("..")) {
                throw unsafe(name, where, "leaves the directory");
            }
            if (!segment.isEmpty() && !segment.equals(".")) {
                kept.add(segment);
            }
        }
        return String.join("/", kept);
    }

    static ServingException unsafe(String name, String where, String why) {
        String shown = name.replaceAll("\\p{Cntrl}", "?");
        return ServingException.invalidArgument(
                where + " holds '" + (shown.length() > 200 ? shown.substring(0, 200) + "..." : shown) + "', which "
                        + why,
                "pack the model again with relative names only");
    }

    public static String last(String path) {
        String trimmed = path.endsWith("/") ? path.substring(0, path.length() - 1) : path;
        return trimmed.substring(trimmed.lastIndexOf('/') + 1);
    }

    /** Whether a name has the extension of an archive format that is known and not supported. */
    static boolean unsupportedArchive(String name) {
        String lower = name.toLowerCase(java.util.Locale.ROOT);
        return List.of(".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst", ".tzst").stream()
                .anyMatch(lower::endsWith);
    }

    /** Whether a name has the extension of a supported archive format. */
    public static boolean archive(String name) {
        String lower = name.toLowerCase(java.util.Locale.ROOT);
        return lower.endsWith(".tar") || lower.endsWith(".tgz") || lower.endsWith(".tar.gz") || lower.endsWith(".zip");
    }
}
