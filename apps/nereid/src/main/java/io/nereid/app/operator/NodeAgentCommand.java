// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import io.nereid.app.process.Logging;
import io.nereid.app.text.DurationConverter;
import io.nereid.base.ServingException;
import io.nereid.base.Units;
import io.nereid.control.operator.nodeagent.NodeAgentOptions;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.logging.Level;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code nereid operator node-agent}: keeps models on a node. */
@Command(
        name = "node-agent",
        mixinStandardHelpOptions = true,
        description = {
            "Runs the agent of a node: it downloads the models that the LocalModelNode of its node lists for a"
                    + " LocalModelNodeGroup, keeps them within the storageLimit of the group, and reports progress.",
            "",
            "The operator starts agents by itself, as a DaemonSet for each LocalModelNodeGroup."
        },
        footer = {"", "Try it:", "  nereid operator node-agent --node gpu-1 --group gpus --directory /mnt/local-models"
        })
@SuppressWarnings("NullAway.Init") // options are set by picocli
public final class NodeAgentCommand implements Callable<Integer> {
    @Option(
            names = "--node",
            paramLabel = "NAME",
            defaultValue = "${env:NODE_NAME:-}",
            description = "The name of the node (default: NODE_NAME).")
    String node;

    @Option(
            names = "--group",
            paramLabel = "NAME",
            required = true,
            description = "The LocalModelNodeGroup whose models are kept.")
    String group;

    @Option(
            names = "--directory",
            paramLabel = "DIR",
            required = true,
            description = "The volume of the group; models are in its folder models.")
    Path directory;

    @Option(
            names = "--credentials-namespace",
            paramLabel = "NAME",
            defaultValue = "kserve-localmodel-jobs",
            description = "The namespace of the secrets for models of LocalModelCaches (default: ${DEFAULT-VALUE}).")
    String credentials;

    @Option(
            converter = DurationConverter.class,
            names = "--retry",
            paramLabel = "TIME",
            defaultValue = "60s",
            description = "After which time a failed download is tried again (default: ${DEFAULT-VALUE}).")
    String retry;

    @Mixin
    private ClusterOptions cluster = new ClusterOptions();

    @Override
    public Integer call() throws Exception {
        if (node.isBlank()) {
            throw ServingException.invalidArgument("the name of the node is missing", "give --node, or set NODE_NAME");
        }
        if (!Files.isDirectory(directory)) {
            throw ServingException.invalidArgument(
                    "--directory " + directory + " is not a directory", "mount the volume of the group there");
        }
        Duration again = Units.duration(retry);
        if (again.compareTo(Duration.ofSeconds(1)) < 0) {
            throw ServingException.invalidArgument("--retry " + retry + " is less than a second");
        }
        Logging.configure(cluster.logFormat, Level.INFO);
        return NodeAgentProcess.run(
                cluster,
                new NodeAgentOptions(
                        node.strip(),
                        group,
                        directory.toAbsolutePath().normalize(),
                        ClusterOptions.namespace("--credentials-namespace", credentials),
                        again,
                        cluster.healthPort()));
    }
}
