// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.doctor;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.connection.CredentialsFile;
import io.nereid.app.controlplane.ControlFlags;
import io.nereid.app.controlplane.ControlToken;
import io.nereid.app.doctor.Finding.Level;
import io.nereid.app.plugins.PluginChecks;
import io.nereid.app.process.CacheDirectory;
import io.nereid.app.text.OutputFormat;
import io.nereid.app.text.OutputOption;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code nereid doctor}: checks whether a server with some options can run here, and is safe. */
@Command(
        name = "doctor",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Check this machine for a server: ports, memory, open files, Java, plugins, Python, disk, files with"
                    + " secrets and who may manage it. Takes the options and the environment (NEREID_<OPTION>) of nereid"
                    + " serve.",
            "Exit code 1 when a check fails."
        },
        footer = {"", "  nereid doctor", "  nereid doctor --host 0.0.0.0 --api-keys keys.json --json"})
@SuppressWarnings("NullAway.Init") // set by picocli
public final class DoctorCommand implements Callable<Integer> {
    @Option(
            names = "--host",
            defaultValue = "127.0.0.1",
            description = "As of nereid serve (default: ${DEFAULT-VALUE}).")
    private String host;

    @Option(names = "--port", defaultValue = "8080", description = "As of nereid serve (default: ${DEFAULT-VALUE}).")
    private int port;

    @Option(names = "--grpc-port", description = "As of nereid serve.")
    private @Nullable Integer grpcPort;

    @Option(names = "--metrics-port", description = "As of nereid serve.")
    private @Nullable Integer metricsPort;

    @Option(names = "--control", description = "As of nereid serve: check the port of the control API, too.")
    private boolean control;

    @Option(
            names = "--control-address",
            defaultValue = "127.0.0.1",
            description = "As of nereid serve (default: ${DEFAULT-VALUE}).")
    private String controlAddress;

    @Option(
            names = "--control-port",
            defaultValue = "8090",
            description = "As of nereid serve (default: ${DEFAULT-VALUE}).")
    private int controlPort;

    @Option(names = "--control-directory", paramLabel = "DIR", description = "As of nereid serve.")
    private @Nullable Path controlDirectory;

    @Option(names = "--api-keys", paramLabel = "FILE", description = "As of nereid serve.")
    private @Nullable Path apiKeys;

    @Option(names = "--access-config", paramLabel = "FILE", description = "As of nereid serve.")
    private @Nullable Path accessConfig;

    @Option(names = "--open-management", description = "As of nereid serve.")
    private boolean openManagement;

    @Option(names = "--allow-model-upload", description = "As of nereid serve.")
    private boolean modelUpload;

    @Option(
            names = "--python",
            paramLabel = "PATH",
            defaultValue = "python3",
            description = "The interpreter of models in Python (default: ${DEFAULT-VALUE}).")
    private String python;

    @Mixin
    private OutputOption output;

    @Option(names = "--json", description = "The same as --output json.")
    private boolean json;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        List<Finding> findings = findings();
        boolean failed = findings.stream().anyMatch(f -> f.level() == Level.FAIL);
        PrintWriter out = spec.commandLine().getOut();
        OutputFormat format = json ? OutputFormat.JSON : output.format();
        if (format.isDocument()) {
            ObjectNode tree = JsonNodeFactory.instance.objectNode();
            tree.put("ok", !failed);
            ArrayNode list = tree.putArray("findings");
            for (Finding finding : findings) {
                ObjectNode each = list.addObject();
                each.put("level", finding.level().name()).put("check", finding.check());
                each.put("text", finding.text());
                if (finding.remedy() != null) {
                    each.put("remedy", finding.remedy());
                }
            }
            format.print(tree, out);
        } else {
            for (Finding finding : findings) {
                out.println(String.format(
                        Locale.ROOT, "%-4s  %-10s  %s", finding.level(), finding.check(), finding.text()));
                if (finding.remedy() != null) {
                    out.println("                  " + finding.remedy());
                }
            }
        }
        out.flush();
        return failed ? 1 : 0;
    }

    private List<Finding> findings() {
        List<Finding> all = new ArrayList<>();
        all.add(AccessChecks.port("--port", host, port));
        if (grpcPort != null) {
            all.add(AccessChecks.port("--grpc-port", host, grpcPort));
        }
        if (metricsPort != null) {
            all.add(AccessChecks.port("--metrics-port", host, metricsPort));
        }
        if (control) {
            all.add(AccessChecks.port("--control-port", controlAddress, controlPort));
        }
        all.add(ProcessChecks.memory());
        all.add(ProcessChecks.files());
        all.add(ProcessChecks.java());
        PluginChecks.broken()
                .forEach((name, why) -> all.add(Finding.fail(
                        "plugins",
                        "plugin '" + name + "' is broken: " + why,
                        "install it again: nereid plugins remove " + name + ", nereid plugins install " + name)));
        List<String> usable = PluginChecks.usable();
        all.add(Finding.ok("plugins", usable.isEmpty() ? "none installed" : String.join(", ", usable)));
        all.addAll(ProcessChecks.python(python));
        all.add(ProcessChecks.disk(CacheDirectory.configured()));
        boolean credentials = apiKeys != null || accessConfig != null;
        all.add(AccessChecks.management(
                control && isWider() ? controlAddress : host, credentials, openManagement, modelUpload));
        if (apiKeys != null) {
            all.addAll(AccessChecks.keys(apiKeys));
        }
        if (accessConfig != null) {
            all.addAll(AccessChecks.rules(accessConfig));
        }
        add(
                all,
                AccessChecks.existing(
                        "the control token", ControlToken.file(ControlFlags.directoryOr(controlDirectory))));
        add(all, AccessChecks.existing("the tokens of nereid login", CredentialsFile.defaultPath(System.getenv())));
        return all;
    }

    /** Whether the control API is reachable where the other ports are not. */
    private boolean isWider() {
        return !controlAddress.equals("127.0.0.1") && !controlAddress.equals("localhost");
    }

    private static void add(List<Finding> all, @Nullable Finding finding) {
        if (finding != null) {
            all.add(finding);
        }
    }
}
