// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.base.Units;
import io.nereid.control.api.ServiceConfig;
import io.nereid.storage.request.StorageOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** Options of the control plane in the server. */
@SuppressWarnings("NullAway.Init") // options are set by picocli
final class ControlFlags {
    private static final Pattern DOMAIN = Pattern.compile("[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?");
    /** How Knative makes hosts. */
    private static final String KNATIVE_TEMPLATE = "{{ .Name }}.{{ .Namespace }}.{{ .IngressDomain }}";

    @Option(
            names = "--control",
            description =
                    "Take InferenceServices, ServingRuntimes and InferenceGraphs: nereid apply -f FILE, or kubectl.")
    boolean control;

    @Option(
            names = "--control-address",
            defaultValue = "127.0.0.1",
            description =
                    "Address of the control API. It asks nobody who he is: leave it on loopback, or put something in"
                            + " front (default: ${DEFAULT-VALUE}).")
    String address;

    @Option(
            names = "--control-port",
            defaultValue = "8090",
            description = "Port of the control API; 0 takes a free one (default: ${DEFAULT-VALUE}).")
    int port;

    @Option(
            names = "--control-host",
            paramLabel = "NAME",
            description = "A further host name by which clients may call the control API; may be repeated.")
    List<String> hosts = new ArrayList<>();

    @Option(
            names = "--control-directory",
            paramLabel = "DIR",
            description = "Where resources are kept (default: $XDG_DATA_HOME/nereid, or ~/.local/share/nereid).")
    @Nullable
    Path directory;

    @Option(
            names = "--model-cache",
            paramLabel = "DIR",
            description = "Where models that were fetched are kept (default: $XDG_CACHE_HOME/nereid/models, or"
                    + " ~/.cache/nereid/models).")
    @Nullable
    Path cache;

    @Option(
            names = "--model-cache-size",
            defaultValue = "100GiB",
            description = "Most bytes of it; what was not used for longest goes first (default: ${DEFAULT-VALUE}).")
    String cacheSize;

    @Option(
            names = "--pvc-root",
            paramLabel = "DIR",
            description = "The directory whose sub-directories are the claims that pvc://CLAIM/PATH names.")
    @Nullable
    Path pvcRoot;

    @Option(
            names = "--ingress-domain",
            paramLabel = "DOMAIN",
            description =
                    "What the hosts of services end with, and a port if URLs shall have one (default: localhost with"
                            + " the server's port). The settings in inferenceservice-config go before it.")
    @Nullable
    String ingressDomain;

    /** Whether the server's port is encrypted. Set by who knows. */
    boolean encrypted;

    /** The settings of services where none are stored, for a server that listens on a port. */
    ServiceConfig settings(int port) {
        ObjectNode tree = new ObjectNode(JsonNodeFactory.instance);
        ObjectNode ingress = tree.putObject("ingress");
        String domain = ingressDomain;
        if (domain == null) {
            ingress.put("ingressDomain", port == (encrypted ? 443 : 80) ? "localhost" : "localhost:" + port);
            // the hosts of KServe's documentation
            ingress.putArray("additionalIngressDomains").add("example.com");
        } else {
            ingress.put("ingressDomain", domain);
        }
        ingress.putArray("additionalDomainTemplates").add(KNATIVE_TEMPLATE);
        if (encrypted) {
            ingress.put("urlScheme", "https");
        }
        return ServiceConfig.defaults().with(tree);
    }

    Path directory() {
        return directory != null
                ? directory
                : home("XDG_DATA_HOME", ".local/share").resolve("nereid");
    }

    Set<String> hosts() {
        Set<String> all = new LinkedHashSet<>(hosts);
        all.add(address);
        return all;
    }

    StorageOptions storage() {
        Path where = cache != null ? cache : home("XDG_CACHE_HOME", ".cache").resolve("nereid/models");
        Map<String, String> environment = System.getenv();
        StorageOptions options = StorageOptions.defaults(where.toAbsolutePath()).withEnvironment(environment);
        options = options.withQuota(Units.bytes(cacheSize), options.keepFreeBytes());
        return pvcRoot == null ? options : options.withPvcRoot(pvcRoot.toAbsolutePath());
    }

    /** What only means something with {@code --control} is refused without it. */
    void check() {
        if (!control
                && (directory != null
                        || cache != null
                        || pvcRoot != null
                        || ingressDomain != null
                        || !hosts.isEmpty())) {
            throw ServingException.invalidArgument(
                    "--control-directory, --control-host, --ingress-domain, --model-cache and --pvc-root need"
                            + " --control",
                    "add --control");
        }
        if (ingressDomain != null && !DOMAIN.matcher(ingressDomain).matches()) {
            throw ServingException.invalidArgument(
                    "--ingress-domain is '" + ingressDomain
                            + "' (expected: a domain such as example.com, or example.com:8080)",
                    ingressDomain.contains("/") ? "leave the scheme and the path out" : null);
        }
    }

    private static Path home(String variable, String otherwise) {
        String set = System.getenv(variable);
        if (set != null && !set.isEmpty()) {
            return Path.of(set);
        }
        // The variable goes first: in a container, a user without an entry among the system's has no other home.
        String home = System.getenv("HOME");
        return Path.of(home != null && home.startsWith("/") ? home : System.getProperty("user.home"), otherwise);
    }
}
