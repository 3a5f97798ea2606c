// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.control;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.connection.OwnerOnlyFile;
import io.nereid.app.text.YamlWriter;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code nereid kubeconfig}: the configuration with which kubectl and Kubernetes clients use the control API. */
@Command(
        name = "kubeconfig",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Print a kubeconfig for the control API, with its certificate and the token of its owner, or with --token.",
            "The URL in it begins with https://, as kubectl sends a token over TLS only."
        },
        footer = {
            "",
            "  nereid kubeconfig --output nereid.kubeconfig",
            "  kubectl --kubeconfig nereid.kubeconfig get isvc",
            "  nereid kubeconfig --server https://models.example.com:8090 --token-file key.txt -n team-a"
        })
@SuppressWarnings("NullAway.Init") // set by picocli
public final class KubeconfigCommand implements Callable<Integer> {
    private static final String NAME = "nereid";

    @Option(
            names = {"-o", "--output"},
            paramLabel = "FILE",
            description = "Write the configuration to a file that only its owner can read.")
    private @Nullable Path output;

    @Mixin
    private ControlOptions options;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        ControlOptions.KubernetesAccess access = options.access(spec);
        ObjectNode tree = JsonNodeFactory.instance.objectNode();
        tree.put("apiVersion", "v1").put("kind", "Config");
        ObjectNode cluster =
                tree.putArray("clusters").addObject().put("name", NAME).putObject("cluster");
        cluster.put("server", access.url());
        if (access.authority() != null) {
            cluster.put("certificate-authority-data", access.authority());
        }
        ObjectNode user = tree.putArray("users").addObject().put("name", NAME).putObject("user");
        user.put("token", access.token());
        tree.putArray("contexts")
                .addObject()
                .put("name", NAME)
                .putObject("context")
                .put("cluster", NAME)
                .put("user", NAME)
                .put("namespace", options.namespace());
        tree.put("current-context", NAME);
        String text = YamlWriter.of(tree);
        PrintWriter out = spec.commandLine().getOut();
        if (output == null) {
            out.print(text);
        } else {
            OwnerOnlyFile.write(output, text);
            out.println("written to " + output + "; use it with: kubectl --kubeconfig " + output + " get isvc");
        }
        out.flush();
        return 0;
    }
}
