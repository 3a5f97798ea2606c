// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import io.nereid.app.config.EffectiveOptions;
import io.nereid.app.config.ServeConfiguration;
import io.nereid.app.controlplane.StoredModels;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;

/** The options that say what clients may do and see. Set by picocli, then only read. */
final class ClientFlags {
    @Option(
            names = "--allow-model-upload",
            description = "Let clients that may load models bring files and code of their own in a load request.")
    boolean modelUpload;

    @Option(
            names = "--request-log-root",
            paramLabel = "DIR",
            description = "Directory below which a model list of a client may write request logs (logging_config); by"
                    + " default such a list may only use the prefixes of the list at the start.")
    @Nullable Path requestLogRoot;

    /** {@code on} or {@code off}. */
    enum Switch {
        on,
        off
    }

    @Option(
            names = "--console",
            paramLabel = "on|off",
            description = "The web console at /console, for callers with the permission 'console': on (the default) or"
                    + " off.")
    Switch console = Switch.on;

    /** Where the arguments come from. */
    ServeConfiguration configuration = ServeConfiguration.plain(List.of());

    /** What clients may do, and what the console shows. */
    NereidServer.ClientRules rules(
            boolean explicitLoads,
            boolean metrics,
            List<Path> missing,
            @Nullable StoredModels modelStorage,
            CommandSpec serve) {
        Supplier<String> settings = console == Switch.off
                ? null
                : () -> EffectiveOptions.document(EffectiveOptions.of(
                                serve.commandLine().getParseResult(), configuration, System.getenv(), true))
                        .toString();
        return new NereidServer.ClientRules(explicitLoads, requestLogRoot, metrics, missing, settings, modelStorage);
    }
}
