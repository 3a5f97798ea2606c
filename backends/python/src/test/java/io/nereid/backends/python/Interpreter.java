// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.util.concurrent.TimeUnit;

/**
 * The interpreter for tests: {@code NEREID_TEST_PYTHON}, or {@code python3}. Tests without one are skipped and report
 * that.
 */
final class Interpreter {
    private Interpreter() {}

    static String path() {
        String named = System.getenv("NEREID_TEST_PYTHON");
        return named == null || named.isEmpty() ? "python3" : named;
    }

    static void assumePython() {
        assume("import sys; sys.exit(sys.version_info < (3, 8))", "Python 3.8 or newer");
    }

    static void assumeNumpy() {
        assume("import numpy", "numpy");
    }

    private static void assume(String program, String what) {
        boolean there = runs(program);
        if (!there) {
            System.getLogger(Interpreter.class.getName())
                    .log(
                            System.Logger.Level.WARNING,
                            "SKIPPED: " + path() + " has no " + what + "; name another with NEREID_TEST_PYTHON");
        }
        assumeTrue(there, path() + " has no " + what + "; name another with NEREID_TEST_PYTHON");
    }

    private static boolean runs(String program) {
        try {
            Process process = new ProcessBuilder(path(), "-c", program)
                    .redirectErrorStream(true)
                    .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                    .start();
            return process.waitFor(60, TimeUnit.SECONDS) && process.exitValue() == 0;
        } catch (IOException e) {
            return false;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }
}
