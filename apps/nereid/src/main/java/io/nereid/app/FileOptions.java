// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Option;

/** Resources that files name. Set by picocli; confined to one thread. */
final class FileOptions {
    @Option(
            names = {"-f", "--filename"},
            paramLabel = "FILE",
            description =
                    "What a file names, or the files of a directory; - is the standard input; may be given again.")
    List<String> files = new ArrayList<>();

    @Option(
            names = {"-R", "--recursive"},
            description = "Look into the directories of a directory too.")
    boolean recursive;
}
