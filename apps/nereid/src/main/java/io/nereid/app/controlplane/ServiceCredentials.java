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
import io.nereid.payload.PayloadSettings;
import io.nereid.storage.request.StorageCredentials;
import io.nereid.storage.request.StorageCredentials.Secret;
import io.nereid.storage.request.StorageRequest;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Credentials for object stores from the secrets and service accounts of namespaces. Thread-safe if its functions are. */
public final class ServiceCredentials {
    private static final ResourceStore.Type SECRETS = new ResourceStore.Type("", "secrets");
    private static final ResourceStore.Type ACCOUNTS = new ResourceStore.Type("", "serviceaccounts");
    private static final String PLACEHOLDER = "<scheme-placeholder>://";

    private final Function<ResourceStore.Key, @Nullable ObjectNode> objects;
    private final Function<String, InferenceServiceConfig> configs;

    /**
     * @param objects returns a secret or service account; null for none
     * @param configs returns the settings of a namespace
     */
    public ServiceCredentials(
            Function<ResourceStore.Key, @Nullable ObjectNode> objects,
            Function<String, InferenceServiceConfig> configs) {
        this.objects = objects;
        this.configs = configs;
    }

    /**
     * The request for an artifact, with credentials from the namespace.
     *
     * @throws ServingException FAILED_PRECONDITION when a secret or service account is missing
     */
    public StorageRequest request(Artifact artifact, String namespace) {
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
        ObjectNode tree = objects.apply(new ResourceStore.Key(ACCOUNTS, namespace, account));
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
     * Returns the credentials for writing. The key names an entry of the common secret or a secret of its own, for
     * KServe's examples use both; without a key, the service account's secrets apply.
     */
    Map<String, String> writing(String url, PayloadSettings.Storage where, String namespace) {
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

    @Nullable Secret secret(String namespace, String name) {
        ObjectNode tree = objects.apply(new ResourceStore.Key(SECRETS, namespace, name));
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

    static Map<String, String> texts(JsonNode tree) {
        Map<String, String> texts = new HashMap<>();
        tree.properties()
                .forEach(entry -> texts.put(entry.getKey(), entry.getValue().asText()));
        return texts;
    }
}
