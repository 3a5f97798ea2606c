// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.control;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.connection.ConnectionOptions;
import io.nereid.app.connection.Missing;
import io.nereid.app.connection.ServerAddress;
import io.nereid.app.controlplane.ControlCertificate;
import io.nereid.app.controlplane.ControlFlags;
import io.nereid.app.controlplane.ControlToken;
import io.nereid.app.kubeconfig.KubeconfigOptions;
import io.nereid.base.ErrorCode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.yaml.ManifestReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** The options that all commands on resources share. Set by picocli; confined to one thread. */
@SuppressWarnings("NullAway.Init")
final class ControlOptions {
    static final String DEFAULT_NAMESPACE = "default";

    private static final List<String> SUFFIXES = List.of(".yaml", ".yml", ".json");

    @Option(
            names = "--server",
            paramLabel = "URL",
            defaultValue = "${env:NEREID_CONTROL:-http://127.0.0.1:8090}",
            description = "The server's control API (default: NEREID_CONTROL, or http://127.0.0.1:8090).")
    private String server;

    @Option(
            names = {"-n", "--namespace"},
            paramLabel = "NAME",
            description = "The namespace (default: that of the kubeconfig's context, or default).")
    private @Nullable String namespace;

    @Option(
            names = "--control-directory",
            paramLabel = "DIR",
            description = "Directory of the control plane on this machine, where the token of its owner is (default:"
                    + " $XDG_DATA_HOME/nereid, or ~/.local/share/nereid).")
    private @Nullable Path directory;

    @Mixin
    private KubeconfigOptions kubeconfig;

    @Mixin
    private ConnectionOptions connection;

    @Spec(Spec.Target.MIXEE)
    private CommandSpec command;

    /** Whether the command is for a Kubernetes cluster. */
    boolean isCluster() {
        return kubeconfig.chosen(command.commandLine().getParseResult(), System.getenv());
    }

    ControlClient client(CommandSpec spec) {
        PrintWriter err = spec.commandLine().getErr();
        if (isCluster()) {
            return new ControlClient(
                    kubeconfig.connect(
                            connection.overrides(command.commandLine().getParseResult()), err),
                    err);
        }
        return new ControlClient(
                connection.connect(
                        ServerAddress.of(server),
                        Missing.CONTROL_API,
                        () -> ControlToken.read(ControlFlags.directoryOr(directory)),
                        err),
                err);
    }

    /**
     * How a Kubernetes client reaches the control API.
     *
     * @param url begins with {@code https://}
     * @param authority the authority of its certificate, PEM in Base64; null for those that the client knows
     */
    record KubernetesAccess(String url, @Nullable String authority, String token) {}

    /** How a Kubernetes client reaches the control API, with the credentials that the commands use. */
    KubernetesAccess access(CommandSpec spec) {
        if (isCluster()) {
            throw ServingException.invalidArgument(
                    "--kubeconfig and --context have no meaning here: the kubeconfig that is printed is for the control"
                            + " API of a server of Nereid",
                    "for the contexts of a kubeconfig: kubectl config view");
        }
        Path where = ControlFlags.directoryOr(directory);
        ServerAddress given = ServerAddress.of(server);
        ServerAddress secure = ServerAddress.of(given.url().replaceFirst("(?i)^http://", "https://"));
        String token = connection.token(given, () -> ControlToken.read(where));
        if (token == null) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "there is no token for " + given.url()
                            + (given.isLoopback() ? ": '" + where + "' has none, or it cannot be read" : ""),
                    "set --control-directory to that of the server (as its owner), or --token-file to a key with the"
                            + " permission control");
        }
        String authority = connection.authorityPem();
        if (authority == null) {
            authority = ControlCertificate.read(where);
        }
        return new KubernetesAccess(
                secure.url(),
                authority == null
                        ? null
                        : Base64.getEncoder().encodeToString(authority.getBytes(StandardCharsets.UTF_8)),
                token);
    }

    String namespace() {
        return namespace != null ? namespace : isCluster() ? kubeconfig.namespace() : DEFAULT_NAMESPACE;
    }

    /**
     * A reference to a resource.
     *
     * @param namespace empty for cluster-scoped kinds
     */
    record Named(ResourceKind kind, String namespace, String name) {
        String path() {
            return ControlClient.path(kind, namespace, name);
        }

        /** As kubectl names it. */
        String shown() {
            return (kind.group().isEmpty() ? kind.singular() : kind.singular() + "." + kind.group()) + "/" + name;
        }
    }

    Named named(ResourceKind kind, String name) {
        return new Named(kind, kind.namespaced() ? namespace() : "", name);
    }

    /** Whose resource this is. */
    Named named(ObjectNode resource) {
        String apiVersion = resource.path("apiVersion").asText("");
        String kindName = resource.path("kind").asText("");
        ResourceKind kind = ResourceKinds.byKind(apiVersion, kindName);
        String name = resource.path("metadata").path("name").asText("");
        if (kind == null) {
            throw ServingException.invalidArgument(
                    "no matches for kind \"" + kindName + "\" in version \"" + apiVersion + "\"",
                    NameSuggestions.didYouMean(
                            kindName,
                            ResourceKinds.all().stream().map(ResourceKind::kind).toList(),
                            "there are "
                                    + String.join(
                                            ", ",
                                            ResourceKinds.all().stream()
                                                    .map(k -> k.kind() + " (" + k.apiVersion() + ")")
                                                    .toList())));
        }
        if (name.isEmpty()) {
            throw ServingException.invalidArgument("a " + kindName + " has no metadata.name");
        }
        String own = resource.path("metadata").path("namespace").asText("");
        if (kind.namespaced() && namespace != null && !own.isEmpty() && !own.equals(namespace)) {
            throw ServingException.invalidArgument(
                    "the namespace from the provided object \"" + own + "\" does not match the namespace \"" + namespace
                            + "\"",
                    "you must pass '--namespace=" + own + "' to perform this operation");
        }
        return new Named(kind, !kind.namespaced() ? "" : own.isEmpty() ? namespace() : own, name);
    }

    /** Resolves a resource type of the command line: plural, singular, short or kind name, with or without group. */
    static ResourceKind kind(String word) {
        String lower = word.toLowerCase(Locale.ROOT);
        List<String> known = new ArrayList<>();
        for (ResourceKind kind : ResourceKinds.all()) {
            List<String> names = new ArrayList<>(kind.shortNames());
            names.add(kind.plural());
            names.add(kind.singular());
            for (String name : names) {
                if (lower.equals(name)
                        || lower.equals(name + "." + kind.group())
                        || lower.equals(name + "." + kind.version() + "." + kind.group())) {
                    return kind;
                }
            }
            known.addAll(names);
        }
        throw ServingException.invalidArgument(
                "the server doesn't have a resource type \"" + word + "\"",
                NameSuggestions.didYouMean(
                        lower,
                        known,
                        "there are "
                                + String.join(
                                        ", ",
                                        ResourceKinds.all().stream()
                                                .map(ResourceKind::plural)
                                                .toList())));
    }

    /** Resolves {@code TYPE NAME...}, {@code TYPE/NAME...} or the resources in files. */
    List<Named> named(List<String> words, FileOptions from) {
        List<Named> all = new ArrayList<>();
        for (ObjectNode resource : resources(from.files, from.recursive)) {
            all.add(named(resource));
        }
        all.addAll(named(words));
        return all;
    }

    /** Resolves {@code TYPE NAME...} or {@code TYPE/NAME...}. */
    List<Named> named(List<String> words) {
        List<Named> all = new ArrayList<>();
        if (words.isEmpty()) {
            return all;
        }
        if (words.get(0).contains("/")) {
            for (String word : words) {
                int slash = word.indexOf('/');
                if (slash < 0) {
                    throw ServingException.invalidArgument(
                            "'" + word + "' is not TYPE/NAME, while '" + words.get(0) + "' is",
                            "for example: isvc/iris");
                }
                all.add(named(kind(word.substring(0, slash)), word.substring(slash + 1)));
            }
            return all;
        }
        ResourceKind kind = kind(words.get(0));
        for (String name : words.subList(1, words.size())) {
            all.add(named(kind, name));
        }
        return all;
    }

    /** Reads all resources of files and directories; {@code -} is standard input. */
    static List<ObjectNode> resources(List<String> files, boolean recursive) {
        List<ObjectNode> all = new ArrayList<>();
        for (String file : files) {
            try {
                if (file.equals("-")) {
                    all.addAll(ManifestReader.parse(
                            new String(System.in.readAllBytes(), StandardCharsets.UTF_8), "the standard input"));
                } else if (Files.isDirectory(Path.of(file))) {
                    List<Path> found;
                    try (Stream<Path> tree = Files.walk(Path.of(file), recursive ? Integer.MAX_VALUE : 1)) {
                        found = tree.filter(path -> SUFFIXES.stream()
                                        .anyMatch(path.getFileName().toString()::endsWith))
                                .filter(Files::isRegularFile)
                                .sorted()
                                .toList();
                    }
                    if (found.isEmpty()) {
                        throw ServingException.invalidArgument(
                                "no .yaml, .yml or .json file in '" + file + "'",
                                recursive ? null : "-R includes its subdirectories");
                    }
                    for (Path path : found) {
                        all.addAll(ManifestReader.parse(Files.readString(path), path.toString()));
                    }
                } else {
                    all.addAll(ManifestReader.parse(Files.readString(Path.of(file)), file));
                }
            } catch (java.nio.file.NoSuchFileException e) {
                throw ServingException.invalidArgument("the path \"" + file + "\" does not exist");
            } catch (IOException e) {
                throw ServingException.wrap(ErrorCode.NOT_FOUND, "cannot read '" + file + "': " + e.getMessage(), e);
            }
        }
        return all;
    }
}
