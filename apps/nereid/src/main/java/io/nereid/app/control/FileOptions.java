// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.control;

import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Option;

/** The options that select resources by files. Set by picocli; confined to one thread. */
final class FileOptions {
    @Option(
            names = {"-f", "--filename"},
            paramLabel = "FILE",
            description =
                    "The resources in a file or in the files of a directory; - for standard input; may be repeated.")
    List<String> files = new ArrayList<>();

    @Option(
            names = {"-R", "--recursive"},
            description = "Include subdirectories.")
    boolean recursive;
}
