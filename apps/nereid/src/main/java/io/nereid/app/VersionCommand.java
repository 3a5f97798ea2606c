// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.app.plugins.InstalledPlugins;
import io.nereid.app.plugins.MissingPluginBackend;
import io.nereid.app.process.ProgramVersion;
import java.io.PrintWriter;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** {@code nereid version}. */
@Command(name = "version", description = "Show the version of Nereid, of Java and of the backends.")
final class VersionCommand implements Runnable {
    @Spec
    @SuppressWarnings("NullAway.Init") // set by picocli
    private CommandSpec spec;

    @Override
    public void run() {
        PrintWriter out = spec.commandLine().getOut();
        out.println("nereid " + ProgramVersion.number());
        out.println("java " + Runtime.version() + " (" + System.getProperty("java.vm.vendor") + ")");
        InstalledPlugins.load()
                .backends()
                .forEach(b -> out.println("backend " + b.name()
                        + (b instanceof MissingPluginBackend absent ? " (" + absent.reason() + ")" : "")));
        out.flush();
    }
}
