// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.text;

import java.io.Console;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Whether the standard streams of this process are a terminal. Stateless. */
public final class Terminal {
    private static final Path DESCRIPTORS = Path.of("/proc/self/fd");
    private static final int OUT = 1;
    private static final int ERR = 2;

    private Terminal() {}

    /** Whether standard output is a terminal. */
    public static boolean out() {
        return is(OUT);
    }

    /** Whether standard error is a terminal, where a line of progress can be overwritten. */
    public static boolean err() {
        return is(ERR);
    }

    /**
     * {@link System#console} alone does not answer this: newer JDKs return one without a terminal, and it is about standard
     * input and output together.
     */
    @SuppressWarnings("SystemConsoleNull") // null before JDK 22, and asked further from there on
    private static boolean is(int descriptor) {
        if (Files.isDirectory(DESCRIPTORS)) {
            try {
                String file = DESCRIPTORS
                        .resolve(Integer.toString(descriptor))
                        .toRealPath()
                        .toString();
                return file.startsWith("/dev/pts/") || file.startsWith("/dev/tty") || file.equals("/dev/console");
            } catch (IOException e) {
                return false;
            }
        }
        Console console = System.console();
        if (console == null) {
            return false;
        }
        try {
            return (Boolean) Console.class.getMethod("isTerminal").invoke(console);
        } catch (ReflectiveOperationException e) {
            return true; // before JDK 22 there is a console only with a terminal
        }
    }
}
