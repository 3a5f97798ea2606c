// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.modelserver;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import io.nereid.app.controlplane.PayloadLogListener;
import io.nereid.app.plugins.InstalledPlugins;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.core.Workload;
import io.nereid.control.gateway.activator.PayloadListener;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.payload.ObjectStore;
import io.nereid.payload.PayloadLogs;
import io.nereid.payload.PayloadOrigin;
import io.nereid.payload.PayloadSettings;
import io.nereid.storage.Bucket;
import io.nereid.storage.Storage;
import io.nereid.storage.request.StorageCredentials;
import io.nereid.storage.request.StorageOptions;
import io.nereid.transport.proxy.PooledUpstreamClient;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The payload log of a server of one model, by the option {@code --payload-log}: what the {@code logger} of its service
 * says, with the credentials of the process's environment. Thread-safe.
 */
final class PayloadLogging implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(PayloadLogging.class);
    private static final List<String> FIELDS = List.of(
            "namespace",
            "service",
            "component",
            "source",
            "url",
            "mode",
            "logger",
            "annotations",
            "tlsSkipVerify",
            "caFile");

    private final PooledUpstreamClient client;
    private final PayloadLogs logs;
    private final PayloadLogListener listener;
    private final Path cache;
    private final Map<String, String> environment;
    private @Nullable Storage storage;

    /**
     * Opens the log.
     *
     * @param text the option's value, JSON
     * @param options of the client that sends events
     * @param cache a folder for what stores need
     * @throws ServingException INVALID_ARGUMENT for a wrong setting; FAILED_PRECONDITION for missing certificates
     */
    PayloadLogging(
            String text,
            PooledUpstreamClient.Options options,
            Clock clock,
            Path cache,
            Map<String, String> environment) {
        JsonNode tree = read(text);
        this.cache = cache;
        this.environment = Map.copyOf(environment);
        JsonNode specification =
                tree.path("logger").isObject() ? tree.path("logger") : JsonNodeFactory.instance.objectNode();
        Map<String, String> annotations = new LinkedHashMap<>();
        tree.path("annotations")
                .properties()
                .forEach(entry ->
                        annotations.put(entry.getKey(), entry.getValue().asText()));
        PayloadSettings settings = PayloadSettings.read(
                tree.path("url").asText(""), tree.path("mode").asText(""), specification, annotations);
        settings.warnings().forEach(warning -> LOG.warn("{}", warning));
        this.client = new PooledUpstreamClient(options.withTrust(trust(tree)));
        this.logs = new PayloadLogs(clock, client, this::open);
        this.listener = new PayloadLogListener(logs, workload(tree, annotations), settings, client);
    }

    private static JsonNode read(String text) {
        JsonNode tree;
        try {
            tree = new ObjectMapper().readTree(text);
        } catch (JsonProcessingException e) {
            throw ServingException.invalidArgument("--payload-log is not JSON: " + e.getOriginalMessage());
        }
        tree.fieldNames().forEachRemaining(name -> {
            if (!FIELDS.contains(name)) {
                throw ServingException.invalidArgument(
                        "--payload-log: unknown field " + name + " (expected: " + String.join(", ", FIELDS) + ")");
            }
        });
        return tree;
    }

    private static PooledUpstreamClient.Trust trust(JsonNode tree) {
        if (tree.path("tlsSkipVerify").asBoolean()) {
            return PooledUpstreamClient.Trust.ANY_CERTIFICATE;
        }
        String file = tree.path("caFile").asText("");
        if (file.isEmpty()) {
            return PooledUpstreamClient.Trust.JVM;
        }
        try {
            return PooledUpstreamClient.Trust.of("the file " + file, Files.readString(Path.of(file)));
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "the certificates in " + file + ", which loggers trust, cannot be read: " + e.getMessage(),
                    "create the ConfigMap that caBundle of the section logger names, in the namespace of the service",
                    e);
        }
    }

    private static Workload workload(JsonNode tree, Map<String, String> annotations) {
        String component = tree.path("component").asText("predictor");
        return new Workload(
                tree.path("namespace").asText(""),
                tree.path("service").asText(""),
                Workload.Component.valueOf(component.toUpperCase(Locale.ROOT)),
                tree.path("source").asText(""),
                "",
                new Workload.Process(List.of(), List.of()),
                new Workload.Scaling(1, 1, "concurrency", null, "none", Map.of()),
                0,
                Duration.ZERO,
                null,
                null,
                Map.of(),
                annotations);
    }

    /** Opens a store with the credentials in the environment. */
    private synchronized ObjectStore open(String url, PayloadSettings.Storage where, PayloadOrigin origin) {
        StorageCredentials.checkWriting(url, where.parameters());
        if (storage == null) {
            storage = new Storage(
                    StorageOptions.defaults(cache).withEnvironment(environment),
                    Clock.system(),
                    InstalledPlugins.loadStorageProviders());
        }
        // An entry of the secret storage-config is a variable of the container.
        String entry = environment.get("STORAGE_CONFIG");
        Map<String, String> credentials = StorageCredentials.writing(
                url, entry, List.of(), Map.of(), where.parameters(), StorageCredentials.Names.defaults());
        Bucket bucket = storage.bucket(url, () -> credentials);
        return bucket::put;
    }

    /** Receives the requests to log. */
    PayloadListener listener() {
        return listener;
    }

    void writeMetrics(MetricsWriter page) {
        logs.writeMetrics(page);
    }

    @Override
    public synchronized void close() {
        listener.close();
        logs.close();
        client.close();
        if (storage != null) {
            storage.close();
        }
    }
}
