// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.controlplane;

import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.payload.PayloadSettings;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.proxy.PooledUpstreamClient;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Function;

/**
 * The HTTP clients of payload loggers: the shared client, or one per trust settings ({@code caBundle},
 * {@code caCertFile}, {@code tlsSkipVerify} of the section {@code logger}). Thread-safe: guarded by its own lock.
 */
final class LoggerConnections implements AutoCloseable {
    private static final ResourceStore.Type CONFIG_MAPS = new ResourceStore.Type("", "configmaps");

    private final UpstreamClient common;
    private final PooledUpstreamClient.Options options;
    private final ResourceStore store;
    private final Function<String, InferenceServiceConfig> configs;

    @GuardedBy("this") private final Map<PooledUpstreamClient.Trust, PooledUpstreamClient> others = new HashMap<>();

    /** @param common the shared client; the caller closes it */
    LoggerConnections(
            UpstreamClient common,
            PooledUpstreamClient.Options options,
            ResourceStore store,
            Function<String, InferenceServiceConfig> configs) {
        this.common = common;
        this.options = options;
        this.store = store;
        this.configs = configs;
    }

    /**
     * Returns the client for a logger's settings. It is closed with this object.
     *
     * @throws ServingException FAILED_PRECONDITION when the certificates are missing
     */
    synchronized UpstreamClient of(String namespace, PayloadSettings settings) {
        String marshaller = settings.marshallerUrl();
        boolean tls = settings.url().startsWith("https:") || marshaller != null && marshaller.startsWith("https:");
        PooledUpstreamClient.Trust trust =
                tls ? trust(namespace, configs.apply(namespace).logger()) : PooledUpstreamClient.Trust.JVM;
        return trust.equals(PooledUpstreamClient.Trust.JVM)
                ? common
                : others.computeIfAbsent(trust, t -> new PooledUpstreamClient(options.withTrust(t)));
    }

    private PooledUpstreamClient.Trust trust(String namespace, InferenceServiceConfig.Logger config) {
        String bundle = config.caBundle();
        if (config.tlsSkipVerify()) {
            return PooledUpstreamClient.Trust.ANY_CERTIFICATE;
        }
        if (bundle == null) {
            return PooledUpstreamClient.Trust.JVM;
        }
        ObjectNode tree = store.get(new ResourceStore.Key(CONFIG_MAPS, namespace, bundle));
        String pem =
                tree == null ? "" : tree.path("data").path(config.caCertFile()).asText("");
        String where = "the entry '" + config.caCertFile() + "' of ConfigMap '" + bundle + "'";
        if (pem.isEmpty()) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "missing " + where.substring(4) + ", whose certificates loggers trust",
                    "apply it in namespace '" + namespace + "', then apply the service again");
        }
        return PooledUpstreamClient.Trust.of(where, pem);
    }

    @Override
    public synchronized void close() {
        others.values().forEach(PooledUpstreamClient::close);
    }
}
