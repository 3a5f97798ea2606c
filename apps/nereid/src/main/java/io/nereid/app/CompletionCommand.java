// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import java.io.PrintWriter;
import java.util.Locale;
import picocli.AutoComplete;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nereid completion}: the script with which a shell completes commands and options. Confined to one thread. */
@Command(
        name = "completion",
        mixinStandardHelpOptions = true,
        description = {
            "Print the script with which a shell completes commands and options.",
            "For this shell: source <(nereid completion bash)",
            "For fish: nereid completion fish > ~/.config/fish/completions/nereid.fish",
            "For all shells of bash, with bash-completion: nereid completion bash > ~/.local/share/bash-completion/completions/nereid"
        })
@SuppressWarnings("NullAway.Init") // set by picocli
final class CompletionCommand implements Runnable {
    enum Shell {
        BASH,
        ZSH,
        FISH;

        @Override
        public String toString() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    @Parameters(paramLabel = "SHELL", description = "${COMPLETION-CANDIDATES}")
    private Shell shell;

    @Spec
    private CommandSpec spec;

    @Override
    public void run() {
        PrintWriter out = spec.commandLine().getOut();
        if (shell == Shell.FISH) {
            out.println("# Completion of nereid for fish.");
            out.print(FishCompletion.of(spec.root()));
            out.flush();
            return;
        }
        out.println("# Completion of nereid for " + shell.name().toLowerCase(Locale.ROOT)
                + ": one script for bash and zsh, which in zsh loads what understands bash's.");
        out.print(AutoComplete.bash("nereid", spec.root().commandLine()));
        out.flush();
    }
}
