// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.app.config.ServeConfiguration;
import io.nereid.app.connection.ConnectionOptions;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.IDefaultValueProvider;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.OptionSpec;

/**
 * Reads options that the command line omits from the environment: {@code NEREID_DRAIN_TIMEOUT} for
 * {@code --drain-timeout}.
 */
final class EnvironmentDefaultProvider implements IDefaultValueProvider {
    @Override
    public @Nullable String defaultValue(ArgSpec arg) {
        if (arg instanceof OptionSpec option && !option.longestName().equals(ConnectionOptions.TOKEN)) {
            String value = System.getenv(ServeConfiguration.variable(option));
            if (value != null && !isAddress(option, value)) {
                return value;
            }
        }
        return arg.defaultValue();
    }

    /**
     * NEREID_CONTROL with a URL is the clients' address of the control API; it must not enable {@code serve --control}.
     */
    private static boolean isAddress(OptionSpec option, String value) {
        return option.longestName().equals("--control") && value.contains("://");
    }
}
