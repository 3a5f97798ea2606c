// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.kubeconfig;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.connection.ServerAddress;
import io.nereid.base.ErrorCode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.transport.tls.PemFile;
import java.io.File;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One or several kubeconfig files, joined as kubectl does: of clusters, users and contexts of the same name, the one of
 * the first file counts, and so does the first current context. Paths are relative to the folder of their file. The format
 * is that of {@code k8s.io/client-go/tools/clientcmd/api/v1}. Immutable.
 */
final class Kubeconfig {
    private final Map<String, Entry> clusters = new LinkedHashMap<>();
    private final Map<String, Entry> users = new LinkedHashMap<>();
    private final Map<String, Entry> contexts = new LinkedHashMap<>();
    private final String shown;
    private String current = "";

    /** An entry of a list in a file. */
    private record Entry(String what, JsonNode tree, Path file) {
        String text(String field) {
            return tree.path(field).asText("");
        }

        boolean flag(String field) {
            return tree.path(field).asBoolean(false);
        }

        Path path(String text) {
            Path folder = file.toAbsolutePath().getParent();
            return folder == null ? Path.of(text) : folder.resolve(text);
        }

        ServingException wrong(String why, @Nullable String remedy) {
            return ServingException.of(ErrorCode.FAILED_PRECONDITION, file + ": " + what + " " + why, remedy);
        }

        byte @Nullable [] bytes(String field) {
            String data = text(field + "-data");
            if (!data.isEmpty()) {
                try {
                    return Base64.getDecoder().decode(data.replaceAll("\\s", ""));
                } catch (IllegalArgumentException e) {
                    throw wrong("has a " + field + "-data that is not Base64: " + e.getMessage(), null);
                }
            }
            String name = text(field);
            if (name.isEmpty()) {
                return null;
            }
            try {
                return Files.readAllBytes(path(name));
            } catch (IOException e) {
                throw wrong(
                        "names the file '" + path(name) + "' as " + field + ", which cannot be read: "
                                + e.getClass().getSimpleName(),
                        "check the path and the mode of the file");
            }
        }

        @Nullable PemFile pem(String field) {
            byte[] bytes = bytes(field);
            return bytes == null ? null : new PemFile(field + " of " + what + " in " + file, bytes);
        }
    }

    /**
     * Reads files.
     *
     * @param files files that do not exist are left out, if at least one exists
     * @throws ServingException NOT_FOUND when no file exists, INVALID_ARGUMENT when one is not a kubeconfig
     */
    Kubeconfig(List<Path> files) {
        List<Path> found = files.stream().filter(Files::isRegularFile).toList();
        shown = String.join(
                File.pathSeparator,
                (found.isEmpty() ? files : found).stream().map(Path::toString).toList());
        if (found.isEmpty()) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "the kubeconfig " + shown + " does not exist",
                    "name one with --kubeconfig FILE or KUBECONFIG");
        }
        for (Path file : found) {
            ObjectNode tree = read(file);
            collect(tree, "clusters", "cluster", file, clusters);
            collect(tree, "users", "user", file, users);
            collect(tree, "contexts", "context", file, contexts);
            if (current.isEmpty()) {
                current = tree.path("current-context").asText("");
            }
        }
    }

    private static ObjectNode read(Path file) {
        List<ObjectNode> documents;
        try {
            documents = ManifestReader.parse(Files.readString(file), file.toString());
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.NOT_FOUND, "cannot read the kubeconfig '" + file + "': " + e.getMessage(), e);
        }
        if (documents.isEmpty()) {
            // kubectl makes an empty file when the last context is deleted
            return JsonNodeFactory.instance.objectNode();
        }
        ObjectNode tree = documents.get(0);
        String kind = tree.path("kind").asText("Config");
        String version = tree.path("apiVersion").asText("v1");
        if (documents.size() > 1 || !kind.equals("Config") || !version.equals("v1")) {
            throw ServingException.invalidArgument(file + " is not a kubeconfig: it has "
                    + (documents.size() > 1 ? documents.size() + " documents" : version + " " + kind)
                    + " (expected: one document, v1 Config)");
        }
        return tree;
    }

    private static void collect(ObjectNode tree, String list, String field, Path file, Map<String, Entry> into) {
        for (JsonNode one : tree.path(list)) {
            String name = one.path("name").asText("");
            into.putIfAbsent(name, new Entry("the " + field + " \"" + name + "\"", one.path(field), file));
        }
    }

    /**
     * A context with its cluster and user.
     *
     * @param name null for the current one
     */
    KubeContext context(@Nullable String name) {
        String wanted = name == null ? current : name;
        if (wanted.isEmpty()) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    shown + " has no current context",
                    "name one with --context (there are: " + String.join(", ", contexts.keySet()) + ")");
        }
        Entry context = entry(contexts, wanted, "context", shown);
        Entry cluster = entry(clusters, context.text("cluster"), "cluster", context.file() + ": " + context.what());
        String userName = context.text("user");
        Entry user = userName.isEmpty()
                ? new Entry("no user", context.tree().path(""), context.file())
                : entry(users, userName, "user", context.file() + ": " + context.what());
        String namespace = context.text("namespace");
        return new KubeContext(
                wanted,
                context.file().toString(),
                namespace.isEmpty() ? "default" : namespace,
                cluster(context.text("cluster"), cluster),
                user(userName, user));
    }

    private static Entry entry(Map<String, Entry> all, String name, String what, String where) {
        Entry found = all.get(name);
        if (found == null) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND,
                    where + " has no " + what + " \"" + name + "\"",
                    NameSuggestions.didYouMean(name, all.keySet(), "there are: " + String.join(", ", all.keySet())));
        }
        return found;
    }

    private static KubeCluster cluster(String name, Entry entry) {
        if (!entry.text("tls-server-name").isEmpty()) {
            throw entry.wrong(
                    "has a tls-server-name, which is not supported",
                    "use a server address with a name that the certificate is for");
        }
        ServerAddress server;
        try {
            server = ServerAddress.of(entry.text("server"));
        } catch (ServingException e) {
            throw entry.wrong("has a server that is not an address: " + e.getMessage(), e.remedy());
        }
        return new KubeCluster(
                name,
                server,
                entry.pem("certificate-authority"),
                entry.bytes("certificate-authority"),
                entry.flag("insecure-skip-tls-verify"),
                proxy(entry));
    }

    private static @Nullable InetSocketAddress proxy(Entry entry) {
        String text = entry.text("proxy-url");
        if (text.isEmpty()) {
            return null;
        }
        URI uri;
        try {
            uri = URI.create(text);
        } catch (IllegalArgumentException e) {
            throw entry.wrong("has a proxy-url that is not a URL (expected: http://host:port)", null);
        }
        String scheme = String.valueOf(uri.getScheme()).toLowerCase(Locale.ROOT);
        if (uri.getHost() == null || uri.getUserInfo() != null || !scheme.equals("http")) {
            throw entry.wrong(
                    "has a proxy-url of the form " + scheme + "://"
                            + (uri.getUserInfo() == null ? "…" : "user:password@…")
                            + ", which is not supported (expected: http://host:port)",
                    "connections through the proxy are encrypted from here to the API server");
        }
        return InetSocketAddress.createUnresolved(uri.getHost(), uri.getPort() < 0 ? 80 : uri.getPort());
    }

    private static KubeUser user(String name, Entry entry) {
        if (entry.tree().has("auth-provider")) {
            throw entry.wrong(
                    "has an auth-provider, which Kubernetes has removed",
                    "use the credential plugin (exec) of the provider");
        }
        String token = entry.text("token").strip();
        String tokenFile = entry.text("tokenFile");
        String username = entry.text("username");
        PemFile certificate = entry.pem("client-certificate");
        PemFile key = entry.pem("client-key");
        if ((certificate == null) != (key == null)) {
            throw entry.wrong(
                    "has a " + (key == null ? "client-certificate" : "client-key") + " alone (expected: both)", null);
        }
        ExecPlugin plugin = entry.tree().has("exec") ? plugin(entry) : null;
        List<String> kinds = new ArrayList<>();
        if (!token.isEmpty() || !tokenFile.isEmpty()) {
            kinds.add("token");
        }
        if (!username.isEmpty()) {
            kinds.add("username");
        }
        if (plugin != null) {
            kinds.add("exec");
        }
        if (kinds.size() > 1) {
            throw entry.wrong("has " + String.join(" and ", kinds) + " (expected: one of them)", null);
        }
        return new KubeUser(
                name,
                username.isEmpty() ? null : username + ":" + entry.text("password"),
                // the file is the newer one of both, as for kubectl
                token.isEmpty() || !tokenFile.isEmpty() ? null : token,
                tokenFile.isEmpty() ? null : entry.path(tokenFile),
                certificate,
                key,
                plugin,
                impersonation(entry));
    }

    private static Map<String, List<String>> impersonation(Entry entry) {
        Map<String, List<String>> headers = new LinkedHashMap<>();
        if (!entry.text("as").isEmpty()) {
            headers.put("Impersonate-User", List.of(entry.text("as")));
        }
        if (!entry.text("as-uid").isEmpty()) {
            headers.put("Impersonate-Uid", List.of(entry.text("as-uid")));
        }
        if (!entry.tree().path("as-groups").isEmpty()) {
            headers.put("Impersonate-Group", texts(entry.tree().path("as-groups")));
        }
        for (Map.Entry<String, JsonNode> extra :
                entry.tree().path("as-user-extra").properties()) {
            String key = java.net.URLEncoder.encode(extra.getKey().toLowerCase(Locale.ROOT), StandardCharsets.UTF_8);
            headers.put("Impersonate-Extra-" + key, texts(extra.getValue()));
        }
        return headers;
    }

    private static List<String> texts(JsonNode list) {
        List<String> all = new ArrayList<>();
        list.forEach(one -> all.add(one.asText()));
        return all;
    }

    private static ExecPlugin plugin(Entry entry) {
        JsonNode exec = entry.tree().path("exec");
        String version = exec.path("apiVersion").asText("");
        if (!ExecPlugin.VERSIONS.contains(version)) {
            throw entry.wrong(
                    "has an exec plugin of the version " + (version.isEmpty() ? "(none)" : version) + " (expected: "
                            + String.join(" or ", ExecPlugin.VERSIONS) + ")",
                    "bring the plugin and the kubeconfig up to date with the tools of the cluster's provider");
        }
        String command = exec.path("command").asText("");
        if (command.isEmpty()) {
            throw entry.wrong("has an exec plugin without command", null);
        }
        String interaction = exec.path("interactiveMode").asText("");
        if (interaction.isEmpty()) {
            if (version.endsWith("/v1")) {
                throw entry.wrong(
                        "has an exec plugin without interactiveMode (expected: "
                                + String.join(", ", ExecPlugin.INTERACTIONS) + ")",
                        null);
            }
            interaction = "IfAvailable";
        }
        if (!ExecPlugin.INTERACTIONS.contains(interaction)) {
            throw entry.wrong(
                    "has an exec plugin with interactiveMode: " + interaction + " (expected: "
                            + String.join(", ", ExecPlugin.INTERACTIONS) + ")",
                    null);
        }
        Map<String, String> environment = new LinkedHashMap<>();
        for (JsonNode variable : exec.path("env")) {
            environment.put(
                    variable.path("name").asText(), variable.path("value").asText(""));
        }
        return new ExecPlugin(
                entry.what() + " in " + entry.file(),
                version,
                command.contains("/") ? entry.path(command).toString() : command,
                texts(exec.path("args")),
                environment,
                exec.path("installHint").asText(""),
                exec.path("provideClusterInfo").asBoolean(false),
                interaction);
    }
}
