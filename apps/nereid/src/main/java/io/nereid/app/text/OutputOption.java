// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.text;

import picocli.CommandLine.Option;
import picocli.CommandLine.ScopeType;

/** The option of every command that prints data. Set by picocli; confined to one thread. */
@SuppressWarnings("NullAway.Init") // options are set by picocli
public final class OutputOption {
    @Option(
            names = {"-o", "--output"},
            paramLabel = "FORMAT",
            defaultValue = "table",
            scope = ScopeType.INHERIT,
            description = "table, json or yaml (default: ${DEFAULT-VALUE}).")
    private OutputFormat format;

    /** The chosen format. */
    public OutputFormat format() {
        return format;
    }
}
