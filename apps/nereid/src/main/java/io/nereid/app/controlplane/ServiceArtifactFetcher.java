// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.controlplane;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.text.DownloadProgress;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.core.Workload.Artifact;
import io.nereid.control.core.Workload.EnvironmentSource;
import io.nereid.control.core.Workload.HubSettings;
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
import io.nereid.storage.spi.StorageUri;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * Fetches the artifacts of services and opens the object stores of their payload logs, with credentials from the
 * secrets and service accounts of their namespaces. Thread-safe.
 */
final class ServiceArtifactFetcher implements ArtifactFetcher, ObjectStore.Opener {
    private static final ResourceStore.Type CONFIG_MAPS = new ResourceStore.Type("", "configmaps");

    private final Storage storage;
    private final ResourceStore store;
    private final ServiceCredentials credentials;

    /** @param configs returns the settings of a namespace */
    ServiceArtifactFetcher(Storage storage, ResourceStore store, Function<String, InferenceServiceConfig> configs) {
        this.storage = storage;
        this.store = store;
        this.credentials = new ServiceCredentials(store::get, configs);
    }

    @Override
    public CompletionStage<Lease> fetch(Artifact artifact, String namespace, Consumer<String> log) {
        StorageRequest request;
        HubSettings hub = artifact.hub();
        Map<String, String> settings = new HashMap<>();
        try {
            request = credentials.request(artifact, namespace);
            settings.putAll(request.credentials());
            if (hub != null) {
                settings.putAll(hub.settings());
                hub.sources().forEach(source -> settings.putAll(variables(source, namespace)));
            }
        } catch (ServingException e) {
            return CompletableFuture.failedStage(e);
        }
        log.accept("fetching " + request);
        ProgressListener progress = new DownloadProgress(StorageUri.shown(artifact.uri()), log, Clock.system());
        CompletionStage<StorageLease> fetched = hub == null
                ? storage.fetch(request, progress)
                : HubDownload.fetch(storage, artifact.uri(), settings, progress);
        return fetched.thenApply(Held::new);
    }

    /**
     * Opens the object store of a service's payload logger. Secrets are read at each write, so that rotated ones take
     * effect.
     */
    @Override
    public ObjectStore open(String url, PayloadSettings.Storage where, PayloadOrigin origin) {
        StorageCredentials.checkWriting(url, where.parameters());
        Bucket bucket = storage.bucket(url, () -> credentials.writing(url, where, origin.namespace()));
        return bucket::put;
    }

    @Override
    public Map<String, String> variables(EnvironmentSource source, String namespace) {
        Map<String, String> all;
        if (source.kind().equals("Secret")) {
            Secret secret = credentials.secret(namespace, source.object());
            all = secret == null ? null : secret.data();
        } else {
            ObjectNode tree = store.get(new ResourceStore.Key(CONFIG_MAPS, namespace, source.object()));
            all = tree == null ? null : ServiceCredentials.texts(tree.path("data"));
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
