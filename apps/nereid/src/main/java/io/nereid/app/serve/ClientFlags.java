// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** The options that say what clients that may load models may bring. Set by picocli, then only read. */
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
}
