// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ServiceConfig;
import io.nereid.control.core.ResourceStore;
import io.nereid.payload.PayloadSettings;
import io.nereid.transport.Relay;
import io.nereid.transport.api.UpstreamClient;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Function;

/**
 * Over what loggers send: the common connections, or others where the settings say whom to trust ({@code caBundle},
 * {@code caCertFile}, {@code tlsSkipVerify} of the section {@code logger}). Thread-safe: guarded by itself.
 */
final class LoggerUpstreams implements AutoCloseable {
    private static final ResourceStore.Type CONFIG_MAPS = new ResourceStore.Type("", "configmaps");

    private final UpstreamClient common;
    private final Relay.Options options;
    private final ResourceStore store;
    private final Function<String, ServiceConfig> configs;
    private final Map<Relay.Trust, Relay> others = new HashMap<>();

    /** @param common stays the caller's */
    LoggerUpstreams(
            UpstreamClient common,
            Relay.Options options,
            ResourceStore store,
            Function<String, ServiceConfig> configs) {
        this.common = common;
        this.options = options;
        this.store = store;
        this.configs = configs;
    }

    /**
     * What a logger sends over; closed with this.
     *
     * @throws ServingException FAILED_PRECONDITION when the certificates are not there
     */
    synchronized UpstreamClient of(String namespace, PayloadSettings settings) {
        String marshaller = settings.marshallerUrl();
        boolean tls = settings.url().startsWith("https:") || marshaller != null && marshaller.startsWith("https:");
        Relay.Trust trust = tls ? trust(namespace, configs.apply(namespace).logger()) : Relay.Trust.JVM;
        return trust.equals(Relay.Trust.JVM)
                ? common
                : others.computeIfAbsent(trust, t -> new Relay(options.withTrust(t)));
    }

    private Relay.Trust trust(String namespace, ServiceConfig.Logger config) {
        String bundle = config.caBundle();
        if (config.tlsSkipVerify()) {
            return Relay.Trust.ANYBODY;
        }
        if (bundle == null) {
            return Relay.Trust.JVM;
        }
        ObjectNode tree = store.get(new ResourceStore.Key(CONFIG_MAPS, namespace, bundle));
        String pem =
                tree == null ? "" : tree.path("data").path(config.caCertFile()).asText("");
        String where = "the entry '" + config.caCertFile() + "' of ConfigMap '" + bundle + "'";
        if (pem.isEmpty()) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "there is no " + where.substring(4) + ", whose certificates loggers trust",
                    "apply it in namespace '" + namespace + "', and the service again");
        }
        return Relay.Trust.of(where, pem);
    }

    @Override
    public synchronized void close() {
        others.values().forEach(Relay::close);
    }
}
