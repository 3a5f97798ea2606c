// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.controlplane;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.process.CacheDirectory;
import io.nereid.app.text.SizeConverter;
import io.nereid.base.ServingException;
import io.nereid.base.Units;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.storage.request.StorageAccess;
import io.nereid.storage.request.StorageOptions;
import io.nereid.transport.tls.TlsOptions;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** The options of the server's control plane. Set by picocli, then only read. */
@SuppressWarnings("NullAway.Init") // options are set by picocli
public final class ControlFlags {
    private static final Pattern DOMAIN = Pattern.compile("[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?");
    /** Knative's default domain template. */
    private static final String KNATIVE_TEMPLATE = "{{ .Name }}.{{ .Namespace }}.{{ .IngressDomain }}";

    @Option(
            names = "--control",
            description =
                    "Run the control plane: InferenceServices, ServingRuntimes and InferenceGraphs by nereid apply"
                            + " or kubectl.")
    public boolean control;

    @Option(
            names = "--control-address",
            defaultValue = "127.0.0.1",
            description =
                    "Address of the control API. Clients need no credentials where every address of the server is a"
                            + " loopback address; elsewhere nereid kubeconfig gives them (default: ${DEFAULT-VALUE}).")
    public String address;

    @Option(
            names = "--control-port",
            defaultValue = "8090",
            description = "Port of the control API; 0 for any free port (default: ${DEFAULT-VALUE}).")
    int port;

    @Option(
            names = "--control-host",
            paramLabel = "NAME",
            description = "An additional host name under which clients may call the control API; may be repeated.")
    List<String> hosts = new ArrayList<>();

    @Option(
            names = "--control-directory",
            paramLabel = "DIR",
            description = "Directory for stored resources (default: $XDG_DATA_HOME/nereid, or ~/.local/share/nereid).")
    @Nullable Path directory;

    @Option(
            names = "--model-cache",
            paramLabel = "DIR",
            description = "Cache directory for fetched models (default: $XDG_CACHE_HOME/nereid/models, or"
                    + " ~/.cache/nereid/models).")
    @Nullable Path cache;

    @Option(
            converter = SizeConverter.class,
            names = "--model-cache-size",
            defaultValue = "100GiB",
            description = "Size limit of the model cache, with least-recently-used eviction (default:"
                    + " ${DEFAULT-VALUE}).")
    String cacheSize;

    @Option(
            names = "--pvc-root",
            paramLabel = "DIR",
            description = "Directory with a subdirectory for each claim of pvc://CLAIM/PATH.")
    @Nullable Path pvcRoot;

    @Option(
            names = "--storage-allow",
            paramLabel = "PATTERN",
            split = ",",
            description = "Which storage URIs resources may name, and which hosts are reached for them:"
                    + " scheme://host[:port][/prefix], or * for all; may be repeated. Without it, all URIs are allowed."
                    + " Link-local and metadata addresses are refused unless a pattern names their host, those of this"
                    + " machine too if --control-address is not a loopback address.")
    List<String> storageAllow = new ArrayList<>();

    @Option(
            names = "--allow-model-storage",
            description = "Let clients that may load models name the storage URI of a model in a load request, which"
                    + " the server fetches with its own credentials, as far as --storage-allow permits.")
    boolean modelStorage;

    @Option(
            names = "--trained-models",
            paramLabel = "FILE",
            description = "Serve the models of a file with the format of KServe's models.json: a list of modelName and"
                    + " modelSpec with storageUri and framework. The server fetches them with its own credentials,"
                    + " follows the file, and is ready when each of its first models is loaded or has failed.")
    @Nullable Path trainedModels;

    @Option(
            names = "--ingress-domain",
            paramLabel = "DOMAIN",
            description =
                    "Domain of the services' hosts, with a port if URLs need one (default: localhost with the server's"
                            + " port). Settings in inferenceservice-config take precedence.")
    @Nullable String ingressDomain;

    /** Whether the server's port is encrypted; set once the TLS options are known. */
    public boolean encrypted;

    /** The target of the admission of revisions with a concurrency limit; zero for none. */
    public Duration overloadTarget = Duration.ZERO;

    /** The certificate of the server's port; null for one that the control plane makes itself. */
    public @Nullable TlsOptions tls;

    /** The certificate of the control API. */
    TlsOptions certificate() {
        TlsOptions given = tls;
        if (given != null) {
            ControlCertificate.remove(directory());
            return given;
        }
        return ControlCertificate.readOrCreate(
                directory(),
                hosts(),
                java.time.Instant.ofEpochMilli(io.nereid.base.Clock.system().millis()));
    }

    /** Returns the default service settings of a server that listens on a port. */
    InferenceServiceConfig settings(int port) {
        ObjectNode tree = new ObjectNode(JsonNodeFactory.instance);
        ObjectNode ingress = tree.putObject("ingress");
        String domain = ingressDomain;
        if (domain == null) {
            ingress.put("ingressDomain", port == (encrypted ? 443 : 80) ? "localhost" : "localhost:" + port);
            // The domain in KServe's documentation, so that its examples work unchanged.
            ingress.putArray("additionalIngressDomains").add("example.com");
        } else {
            ingress.put("ingressDomain", domain);
        }
        ingress.putArray("additionalDomainTemplates").add(KNATIVE_TEMPLATE);
        if (encrypted) {
            ingress.put("urlScheme", "https");
        }
        return InferenceServiceConfig.defaults().with(tree);
    }

    Path directory() {
        return directoryOr(directory);
    }

    /** The directory of a control plane: the one given, or the default one. */
    public static Path directoryOr(@Nullable Path given) {
        return given != null ? given : home("XDG_DATA_HOME", ".local/share").resolve("nereid");
    }

    public Set<String> hosts() {
        Set<String> all = new LinkedHashSet<>(hosts);
        all.add(address);
        return all;
    }

    /** The token of the control API; made at the first start, readable by its owner only. */
    public String token() {
        return ControlToken.readOrCreate(directory());
    }

    StorageOptions storage() {
        return storage(onLoopback());
    }

    /** The storage of the model that the option {@code --model_id} names, which the operator of the server has chosen. */
    public StorageOptions serversOwn() {
        return StorageOptions.defaults(CacheDirectory.directory().resolve("hub").toAbsolutePath())
                .withEnvironment(System.getenv());
    }

    private StorageOptions storage(boolean ofThisMachine) {
        Path where = cache != null ? cache : home("XDG_CACHE_HOME", ".cache").resolve("nereid/models");
        Map<String, String> environment = System.getenv();
        StorageOptions options = StorageOptions.defaults(where.toAbsolutePath()).withEnvironment(environment);
        options = options.withQuota(Units.bytes(cacheSize), options.keepFreeBytes())
                .withAccess(StorageAccess.of(storageAllow, ofThisMachine, environment));
        return pvcRoot == null ? options : options.withPvcRoot(pvcRoot.toAbsolutePath());
    }

    /** Whether models come by storage URI, so that there may be no repository. */
    public boolean loadsByUri() {
        return control || modelStorage || trainedModels != null;
    }

    /** How models are loaded by storage URI; null for not at all, or by the control plane. */
    public @Nullable StoredModels modelStorage() {
        return (modelStorage || trainedModels != null) && !control
                ? new StoredModels(storage(false), trainedModels)
                : null;
    }

    /**
     * Whether clients of the control API are on this machine. They can reach its services themselves, so the server's
     * fetches may too.
     */
    private boolean onLoopback() {
        try {
            return InetAddress.getByName(address).isLoopbackAddress();
        } catch (UnknownHostException e) {
            return false;
        }
    }

    /** Rejects options that require {@code --control} when it is not set. */
    public void check() {
        if (control && modelStorage) {
            throw ServingException.invalidArgument(
                    "--allow-model-storage does not go with --control",
                    "apply an InferenceService with the storageUri, or omit --control");
        }
        if (trainedModels != null && (control || modelStorage)) {
            throw ServingException.invalidArgument(
                    "--trained-models does not go with --control and --allow-model-storage",
                    "omit one of them: the file has all models that are loaded by storage URI");
        }
        if (!control && (directory != null || ingressDomain != null || !hosts.isEmpty())) {
            throw ServingException.invalidArgument(
                    "--control-directory, --control-host and --ingress-domain need --control", "add --control");
        }
        if (!loadsByUri() && (cache != null || pvcRoot != null || !storageAllow.isEmpty())) {
            throw ServingException.invalidArgument(
                    "--model-cache, --pvc-root and --storage-allow need --control, --allow-model-storage or"
                            + " --trained-models",
                    "add --control");
        }
        StorageAccess.of(storageAllow, false, Map.of());
        if (ingressDomain != null && !DOMAIN.matcher(ingressDomain).matches()) {
            throw ServingException.invalidArgument(
                    "--ingress-domain is '" + ingressDomain
                            + "' (expected: a domain such as example.com, or example.com:8080)",
                    ingressDomain.contains("/") ? "omit the scheme and the path" : null);
        }
    }

    private static Path home(String variable, String otherwise) {
        String set = System.getenv(variable);
        if (set != null && !set.isEmpty()) {
            return Path.of(set);
        }
        // HOME first: in a container, a user without a passwd entry has no other home directory.
        String home = System.getenv("HOME");
        return Path.of(home != null && home.startsWith("/") ? home : System.getProperty("user.home"), otherwise);
    }
}
