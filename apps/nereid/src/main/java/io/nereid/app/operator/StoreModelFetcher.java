// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import io.nereid.app.controlplane.ServiceCredentials;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.control.core.Workload.Artifact;
import io.nereid.control.operator.nodeagent.ModelFetcher;
import io.nereid.storage.DirectoryFetcher;
import io.nereid.storage.request.StorageAccess;
import io.nereid.storage.request.StorageOptions;
import io.nereid.storage.request.StorageRequest;
import io.nereid.storage.spi.CancellationToken;
import io.nereid.storage.spi.StorageProvider;
import io.nereid.storage.spi.StorageUri;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Downloads models from stores, with credentials that are read at each download and never kept. Thread-safe.
 */
final class StoreModelFetcher implements ModelFetcher {
    private final ServiceCredentials credentials;
    private final List<StorageProvider> plugins;
    private final Clock clock;
    private final boolean ownAddresses;

    /**
     * @param ownAddresses whether the addresses of this machine are permitted
     */
    StoreModelFetcher(
            ServiceCredentials credentials, List<StorageProvider> plugins, Clock clock, boolean ownAddresses) {
        this.credentials = credentials;
        this.plugins = List.copyOf(plugins);
        this.clock = clock;
        this.ownAddresses = ownAddresses;
    }

    @Override
    public void fetch(Source source, Path directory, long most, Progress progress) {
        if (source.key() == null && Set.of("", "file", "pvc").contains(StorageUri.scheme(source.uri()))) {
            throw ServingException.invalidArgument(
                    StorageUri.shown(source.uri()) + " is on a node or in a volume already",
                    "name it in the service, or give the cache a model of a store, such as s3://models/iris");
        }
        StorageRequest request = credentials.request(
                new Artifact(source.uri(), "/mnt/models", source.key(), source.parameters(), source.account(), null),
                source.namespace());
        StorageOptions.Limits usual = StorageOptions.Limits.defaults();
        StorageOptions options = StorageOptions.defaults(directory)
                .withLimits(new StorageOptions.Limits(
                        usual.entries(), Math.max(1, Math.min(usual.bytes(), most)), usual.ratio()))
                // What is older is downloaded again rather than taken for current.
                .withStale(false)
                .withAccess(StorageAccess.of(List.of(), ownAddresses, Map.of()));
        CancellationToken cancel = new CancellationToken();
        AtomicReference<@Nullable RuntimeException> ended = new AtomicReference<>();
        try (DirectoryFetcher fetcher = new DirectoryFetcher(options, clock, plugins)) {
            DirectoryFetcher.Fetched unused = fetcher.fetch(
                    request,
                    directory,
                    step -> {
                        try {
                            progress.on(step.bytes(), step.totalBytes());
                        } catch (RuntimeException e) {
                            ended.compareAndSet(null, e);
                            cancel.cancel();
                        }
                    },
                    cancel);
        } catch (RuntimeException e) {
            RuntimeException first = ended.get();
            throw first == null ? e : first;
        }
        RuntimeException first = ended.get();
        if (first != null) {
            throw first;
        }
    }
}
