// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.kubeconfig;

import io.nereid.app.connection.ApiConnection;
import io.nereid.app.connection.ConnectionOptions.Overrides;
import io.nereid.base.ServingException;
import java.io.File;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParseResult;

/**
 * The options by which a command reaches a Kubernetes cluster instead of a server of Nereid. Set by picocli; confined to
 * one thread.
 *
 * <p>The variable KUBECONFIG alone chooses no cluster: with it set for kubectl, a command that was meant for this
 * machine must not change a cluster. It says where {@code --context} is looked up.
 */
public final class KubeconfigOptions {
    @Option(
            names = "--kubeconfig",
            paramLabel = "FILE",
            description = "Use the Kubernetes cluster of this kubeconfig instead of a server of Nereid.")
    private @Nullable Path file;

    @Option(
            names = "--context",
            paramLabel = "NAME",
            description = "Use the Kubernetes cluster of this context (default: the current one of --kubeconfig; its"
                    + " files are those of KUBECONFIG, or ~/.kube/config).")
    private @Nullable String context;

    private @Nullable KubeContext chosen;

    /**
     * Whether a command is for a cluster. What the command line says wins over the environment; two targets in the same
     * place are refused.
     *
     * @param environment the variables of the environment
     */
    public boolean chosen(ParseResult line, Map<String, String> environment) {
        boolean server = line.hasMatchedOption("--server");
        boolean cluster = line.hasMatchedOption("--kubeconfig") || line.hasMatchedOption("--context");
        if (server && cluster) {
            throw ServingException.invalidArgument(
                    "both --server and " + (line.hasMatchedOption("--kubeconfig") ? "--kubeconfig" : "--context")
                            + " are given (expected: one target)");
        }
        if (server || cluster) {
            return cluster;
        }
        if (file == null && context == null) {
            return false;
        }
        for (String other : List.of("NEREID_CONTROL", "NEREID_SERVER")) {
            if (!environment.getOrDefault(other, "").isEmpty()) {
                throw ServingException.invalidArgument(
                        "both " + other + " and " + (file != null ? "NEREID_KUBECONFIG" : "NEREID_CONTEXT")
                                + " are set (expected: one target)",
                        "name the target with --server, --kubeconfig or --context");
            }
        }
        return true;
    }

    /** The namespace of the context. */
    public String namespace() {
        return context().namespace();
    }

    /**
     * Connects to the API server of the cluster; sends nothing yet.
     *
     * @param err receives warnings
     */
    public ApiConnection connect(Overrides overrides, PrintWriter err) {
        ClusterConnection connection = new ClusterConnection(context(), overrides);
        if (overrides.unverified()) {
            err.println("nereid: warning: the certificate of " + connection.url() + " is not verified");
            err.flush();
        }
        return connection;
    }

    private KubeContext context() {
        KubeContext known = chosen;
        if (known == null) {
            known = new Kubeconfig(files(System.getenv())).context(context);
            chosen = known;
        }
        return known;
    }

    private List<Path> files(Map<String, String> environment) {
        if (file != null) {
            return List.of(file);
        }
        String variable = environment.getOrDefault("KUBECONFIG", "");
        if (!variable.isEmpty()) {
            return Arrays.stream(variable.split(File.pathSeparator, -1))
                    .filter(one -> !one.isEmpty())
                    .map(Path::of)
                    .toList();
        }
        return List.of(Path.of(environment.getOrDefault("HOME", "/"), ".kube", "config"));
    }
}
