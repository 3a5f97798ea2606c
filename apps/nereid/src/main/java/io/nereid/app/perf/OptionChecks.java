// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf;

import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;

/** Errors of a command line that only show when all options are known. Confined to one thread. */
public final class OptionChecks {
    private final CommandSpec spec;

    public OptionChecks(CommandSpec spec) {
        this.spec = spec;
    }

    /** Checks that a number is in a range. */
    public void within(String option, long value, long least, long most) {
        if (value < least || value > most) {
            throw wrong(option + " " + value + " (expected: " + least + " to " + most + ")");
        }
    }

    /** Checks that a number is above zero. */
    public void above(String option, double value, double least) {
        if (!(value > least)) {
            throw wrong(option + " " + value + " (expected: more than " + least + ")");
        }
    }

    /** The error of an invalid command line. */
    public ParameterException wrong(String message) {
        return new ParameterException(spec.commandLine(), message);
    }
}
