// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import java.util.Locale;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.IDefaultValueProvider;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.OptionSpec;

/** Takes an option that the command line leaves out from the environment: {@code --drain-timeout} is NEREID_DRAIN_TIMEOUT. */
final class Environment implements IDefaultValueProvider {
    @Override
    public @Nullable String defaultValue(ArgSpec arg) {
        if (arg instanceof OptionSpec option) {
            String value = System.getenv(variable(option.longestName()));
            if (value != null && !isAddress(option, value)) {
                return value;
            }
        }
        return arg.defaultValue();
    }

    /** NEREID_CONTROL tells clients where the control API is; it does not tell a server of the same shell to have one. */
    private static boolean isAddress(OptionSpec option, String value) {
        return option.longestName().equals("--control") && value.contains("://");
    }

    static String variable(String option) {
        return "NEREID_" + option.replaceFirst("^-+", "").replace('-', '_').toUpperCase(Locale.ROOT);
    }
}
