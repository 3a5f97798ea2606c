// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.plugins.InstalledPlugins;
import io.nereid.app.plugins.MissingPluginBackend;
import io.nereid.app.process.ProgramVersion;
import io.nereid.app.text.OutputOption;
import io.nereid.backend.Backend;
import java.io.PrintWriter;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** {@code nereid version}. */
@Command(
        name = "version",
        mixinStandardHelpOptions = true,
        description = "Show the version of Nereid, of Java and of the backends.")
final class VersionCommand implements Runnable {
    @Mixin
    @SuppressWarnings("NullAway.Init") // set by picocli
    private OutputOption output;

    @Spec
    @SuppressWarnings("NullAway.Init") // set by picocli
    private CommandSpec spec;

    @Override
    public void run() {
        PrintWriter out = spec.commandLine().getOut();
        List<Backend> backends = InstalledPlugins.load().backends();
        if (output.format().isDocument()) {
            ObjectNode document = JsonNodeFactory.instance.objectNode();
            document.put("nereid", ProgramVersion.number());
            document.put("java", Runtime.version().toString());
            document.put("java_vendor", System.getProperty("java.vm.vendor"));
            ArrayNode list = document.putArray("backends");
            for (Backend backend : backends) {
                ObjectNode each = list.addObject().put("name", backend.name());
                each.put("available", !(backend instanceof MissingPluginBackend));
                if (backend instanceof MissingPluginBackend absent) {
                    each.put("reason", absent.reason());
                }
            }
            output.format().print(document, out);
            return;
        }
        out.println("nereid " + ProgramVersion.number());
        out.println("java " + Runtime.version() + " (" + System.getProperty("java.vm.vendor") + ")");
        backends.forEach(b -> out.println("backend " + b.name()
                + (b instanceof MissingPluginBackend absent ? " (" + absent.reason() + ")" : "")));
        out.flush();
    }
}
