// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.controlplane;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.core.Workload.Artifact;
import io.nereid.control.core.Workload.EnvironmentSource;
import io.nereid.control.local.spi.ArtifactFetcher;
import io.nereid.payload.ObjectStore;
import io.nereid.payload.PayloadOrigin;
import io.nereid.payload.PayloadSettings;
import io.nereid.storage.Bucket;
import io.nereid.storage.Storage;
import io.nereid.storage.request.ProgressListener;
import io.nereid.storage.request.StorageCredentials;
import io.nereid.storage.request.StorageCredentials.Secret;
import io.nereid.storage.request.StorageLease;
import io.nereid.storage.request.StorageRequest;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Fetches the artifacts of services and opens the object stores of their payload logs, with credentials from the
 * secrets and service accounts of their namespaces. Thread-safe.
 */
final class ServiceArtifactFetcher implements ArtifactFetcher, ObjectStore.Opener {
    private static final ResourceStore.Type SECRETS = new ResourceStore.Type("", "secrets");
    private static final ResourceStore.Type CONFIG_MAPS = new ResourceStore.Type("", "configmaps");
    private static final ResourceStore.Type ACCOUNTS = new ResourceStore.Type("", "serviceaccounts");
    private static final String PLACEHOLDER = "<scheme-placeholder>://";

    private final Storage storage;
    private final ResourceStore store;
    private final Function<String, InferenceServiceConfig> configs;

    /** @param configs returns the settings of a namespace */
    ServiceArtifactFetcher(Storage storage, ResourceStore store, Function<String, InferenceServiceConfig> configs) {
        this.storage = storage;
        this.store = store;
        this.configs = configs;
    }

    @Override
    public CompletionStage<Lease> fetch(Artifact artifact, String namespace, Consumer<String> log) {
        StorageRequest request;
        try {
            request = request(artifact, namespace);
        } catch (ServingException e) {
            return CompletableFuture.failedStage(e);
        }
        log.accept("fetching " + request);
        return storage.fetch(request, step -> reportProgress(step, log)).thenApply(Held::new);
    }

    private StorageRequest request(Artifact artifact, String namespace) {
        InferenceServiceConfig.Credentials names = configs.apply(namespace).credentials();
        if (artifact.storageKey() != null || artifact.uri().startsWith(PLACEHOLDER)) {
            String path = artifact.uri().startsWith(PLACEHOLDER)
                    ? artifact.uri().substring(PLACEHOLDER.length())
                    : artifact.uri();
            var location = StorageCredentials.storageSpec(
                    secret(namespace, names.storageSpecSecretName()),
                    artifact.storageKey(),
                    path,
                    artifact.parameters());
            return StorageRequest.of(location.uri(), location.credentials());
        }
        Account account = account(namespace, artifact.serviceAccount());
        return StorageRequest.of(
                artifact.uri(), StorageCredentials.settings(account.secrets, account.annotations, names(names)));
    }

    /** The secrets and annotations of a service account. */
    private record Account(List<Secret> secrets, Map<String, String> annotations) {}

    private Account account(String namespace, @Nullable String named) {
        String account = named == null ? "default" : named;
        ObjectNode tree = store.get(new ResourceStore.Key(ACCOUNTS, namespace, account));
        if (tree == null && named != null) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "there is no ServiceAccount '" + account + "' in namespace '" + namespace + "'",
                    "apply it, or omit serviceAccountName");
        }
        List<Secret> secrets = new ArrayList<>();
        if (tree != null) {
            for (JsonNode each : tree.path("secrets")) {
                Secret secret = secret(namespace, each.path("name").asText());
                if (secret == null) {
                    throw ServingException.of(
                            ErrorCode.FAILED_PRECONDITION,
                            "there is no Secret '" + each.path("name").asText() + "', which the ServiceAccount '"
                                    + account + "' names",
                            "apply it in namespace '" + namespace + "'");
                }
                secrets.add(secret);
            }
        }
        return new Account(
                secrets, tree == null ? Map.of() : texts(tree.path("metadata").path("annotations")));
    }

    /**
     * Opens the object store of a service's payload logger. Secrets are read at each write, so that rotated ones take
     * effect.
     */
    @Override
    public ObjectStore open(String url, PayloadSettings.Storage where, PayloadOrigin origin) {
        StorageCredentials.checkWriting(url, where.parameters());
        Bucket bucket = storage.bucket(url, () -> writing(url, where, origin.namespace()));
        return bucket::put;
    }

    /**
     * Returns the credentials for writing. The key names an entry of the common secret or a secret of its own, for
     * KServe's examples use both; without a key, the service account's secrets apply.
     */
    private Map<String, String> writing(String url, PayloadSettings.Storage where, String namespace) {
        InferenceServiceConfig.Credentials names = configs.apply(namespace).credentials();
        String key = where.key();
        String entry = null;
        Secret own = null;
        if (key != null) {
            Secret common = secret(namespace, names.storageSpecSecretName());
            entry = common == null ? null : common.data().get(key);
            own = entry == null ? secret(namespace, key) : null;
            if (entry == null && own == null && where.serviceAccount() == null) {
                throw ServingException.of(
                        ErrorCode.FAILED_PRECONDITION,
                        "a logger's storage names the key '" + key + "', but the Secret '"
                                + names.storageSpecSecretName() + "' has no such entry, and there is no Secret '" + key
                                + "'",
                        "apply one of them in namespace '" + namespace + "', or name a serviceAccountName");
            }
        }
        Account account = entry != null || own != null
                ? new Account(own == null ? List.of() : List.of(own), Map.of())
                : account(namespace, where.serviceAccount());
        return StorageCredentials.writing(
                url, entry, account.secrets, account.annotations, where.parameters(), names(names));
    }

    private static StorageCredentials.Names names(InferenceServiceConfig.Credentials config) {
        StorageCredentials.Names usual = StorageCredentials.Names.defaults();
        Map<String, String> presets = new HashMap<>();
        config.s3().forEach((key, value) -> {
            if (key.startsWith("s3") && !key.endsWith("Name")) {
                presets.put("s3-" + key.substring(2).toLowerCase(Locale.ROOT), value);
            }
        });
        return new StorageCredentials.Names(
                config.s3().getOrDefault("s3AccessKeyIDName", usual.s3AccessKeyId()),
                config.s3().getOrDefault("s3SecretAccessKeyName", usual.s3SecretAccessKey()),
                config.gcsCredentialFileName(),
                presets);
    }

    private @Nullable Secret secret(String namespace, String name) {
        ObjectNode tree = store.get(new ResourceStore.Key(SECRETS, namespace, name));
        if (tree == null) {
            return null;
        }
        Map<String, String> data = texts(tree.path("stringData"));
        tree.path("data").properties().forEach(entry -> {
            try {
                byte[] bytes = Base64.getMimeDecoder().decode(entry.getValue().asText());
                data.put(entry.getKey(), new String(bytes, StandardCharsets.UTF_8));
            } catch (IllegalArgumentException e) {
                throw ServingException.of(
                        ErrorCode.FAILED_PRECONDITION,
                        "data." + entry.getKey() + " of Secret '" + name + "' is not base64",
                        "put plain text under stringData instead");
            }
        });
        return new Secret(name, data, texts(tree.path("metadata").path("annotations")));
    }

    private static Map<String, String> texts(JsonNode tree) {
        Map<String, String> texts = new HashMap<>();
        tree.properties()
                .forEach(entry -> texts.put(entry.getKey(), entry.getValue().asText()));
        return texts;
    }

    @Override
    public Map<String, String> variables(EnvironmentSource source, String namespace) {
        Map<String, String> all;
        if (source.kind().equals("Secret")) {
            Secret secret = secret(namespace, source.object());
            all = secret == null ? null : secret.data();
        } else {
            ObjectNode tree = store.get(new ResourceStore.Key(CONFIG_MAPS, namespace, source.object()));
            all = tree == null ? null : texts(tree.path("data"));
        }
        Map<String, String> found = new HashMap<>();
        String key = source.key();
        if (all != null && key == null) {
            all.forEach((name, value) -> found.put(source.variable() + name, value));
        } else if (all != null && all.containsKey(key)) {
            found.put(source.variable(), all.getOrDefault(key, ""));
        } else if (!source.optional()) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "there is no " + source.kind() + " '" + source.object() + "'"
                            + (all == null ? "" : " with the key '" + key + "'")
                            + (key == null ? " for environment variables" : " for the variable " + source.variable())
                            + " of a container",
                    "apply it in namespace '" + namespace + "', or mark it optional");
        }
        return found;
    }

    private static void reportProgress(ProgressListener.Step step, Consumer<String> log) {
        switch (step.phase()) {
            case DOWNLOADING ->
                log.accept(String.format(
                        Locale.ROOT,
                        "downloading: %.1f MB%s, %d files",
                        step.bytes() / 1e6,
                        step.totalBytes() < 0 ? "" : String.format(Locale.ROOT, " of %.1f MB", step.totalBytes() / 1e6),
                        step.files()));
            case UNPACKING -> log.accept("unpacking");
            case DONE -> log.accept("fetched");
            case LISTING, STORING -> {
                // Progress is logged at most every few seconds.
            }
        }
    }

    /** A lease on files in the storage cache. */
    private record Held(StorageLease stored) implements Lease {
        @Override
        public Path path() {
            return stored.path();
        }

        @Override
        public void close() {
            stored.close();
        }
    }
}
