// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import io.nereid.base.ServingException;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Turns Kubernetes-style secrets into the settings of {@link StorageRequest#credentials()}. Stateless. */
public final class StorageCredentials {
    private StorageCredentials() {}

    /**
     * A secret. Immutable; its values are never shown.
     *
     * @param name of the secret
     * @param data decoded values by key
     * @param annotations of the secret
     */
    public record Secret(String name, Map<String, String> data, Map<String, String> annotations) {
        /** Copies the maps. */
        public Secret {
            data = Map.copyOf(data);
            annotations = Map.copyOf(annotations);
        }

        /** The name and the keys. */
        @Override
        public String toString() {
            return "Secret[" + name + ", keys=" + new java.util.TreeSet<>(data.keySet()) + "]";
        }
    }

    /**
     * Where something is and with what it is fetched. Immutable.
     *
     * @param uri with its scheme and bucket
     * @param credentials for {@link StorageRequest#credentials()}
     */
    public record Location(String uri, Map<String, String> credentials) {
        /** Copies the map. */
        public Location {
            credentials = Map.copyOf(credentials);
        }

        /** The URI and the keys. */
        @Override
        public String toString() {
            return "Location[" + Uris.shown(uri) + ", credentials=" + new java.util.TreeSet<>(credentials.keySet()) + "]";
        }
    }

    /**
     * The settings that the secrets of a service account give, later secrets before earlier ones; each secret is typed
     * by its keys.
     *
     * @param secrets in the account's order
     * @param accountAnnotations annotations of the service account
     */
    public static Map<String, String> settings(List<Secret> secrets, Map<String, String> accountAnnotations) {
        return Map.of();
    }

    /**
     * The {@code storage} of a component: an entry of the secret {@code storage-config}.
     *
     * @param secret the secret, or null if there is none
     * @param key the entry's name, or null for {@code default_{type}} and then {@code default}
     * @param path {@code storage.path}, or null
     * @param parameters override fields of the entry ({@code type}, {@code bucket} and so on)
     * @throws ServingException INVALID_ARGUMENT naming what is missing
     */
    public static Location storageSpec(
            @Nullable Secret secret, @Nullable String key, @Nullable String path, Map<String, String> parameters) {
        throw ServingException.invalidArgument("storage." + key + " is not built");
    }
}
