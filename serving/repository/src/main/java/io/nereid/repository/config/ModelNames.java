// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.config;

import io.nereid.base.ServingException;
import io.nereid.repository.problem.ProblemCollector;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;

/** Validates names of models, versions and files. Immutable. */
public final class ModelNames {
    private static final int MAX_LENGTH = 255;

    private ModelNames() {}

    /** Whether a name is a valid directory name in a repository, without path traversal. */
    public static boolean valid(String name) {
        if (name.isEmpty() || name.length() > MAX_LENGTH || name.startsWith(".")) {
            return false;
        }
        for (int i = 0; i < name.length(); i++) {
            char c = name.charAt(i);
            if (c == '/' || c == '\\' || c < ' ' || c == 0x7f) {
                return false;
            }
        }
        return true;
    }

    /** Rejects an invalid model name of a client. */
    public static void check(String name) {
        if (name.isEmpty()) {
            throw ServingException.invalidArgument("Model name cannot be empty. Please enter a valid name to deploy.");
        }
        if (!valid(name)) {
            throw ServingException.invalidArgument(
                    "invalid model name " + ProblemCollector.quote(name)
                            + ", model name must not contain path traversal characters",
                    "give the name of a directory in the repository");
        }
    }

    /** Whether a relative path stays below the directory it is resolved against. */
    static boolean staysInside(String name) {
        try {
            Path path = Path.of(name);
            return !name.isEmpty()
                    && !path.isAbsolute()
                    && !path.normalize().startsWith("..")
                    && !path.normalize().toString().isEmpty();
        } catch (InvalidPathException e) {
            return false;
        }
    }

    /** The version of a directory name below a base path: digits with or without leading zeros; else -1. */
    public static long listedVersion(String directoryName) {
        int n = directoryName.length();
        int start = 0;
        while (start < n - 1 && directoryName.charAt(start) == '0') {
            start++;
        }
        String digits = directoryName.substring(start);
        return digits.equals("0") ? 0 : version(digits);
    }

    /** The version of a directory name: a whole number from 1 without leading zeros; else -1. */
    public static long version(String directoryName) {
        int n = directoryName.length();
        if (n == 0 || n > 19 || directoryName.charAt(0) == '0') {
            return -1;
        }
        for (int i = 0; i < n; i++) {
            if (directoryName.charAt(i) < '0' || directoryName.charAt(i) > '9') {
                return -1;
            }
        }
        try {
            return Long.parseLong(directoryName);
        } catch (NumberFormatException e) {
            return -1;
        }
    }
}
