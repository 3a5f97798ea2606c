// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.http;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.net.ProxySelector;
import java.net.SocketAddress;
import java.net.URI;
import java.net.URISyntaxException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Selects the proxies of the environment: {@code HTTPS_PROXY}, {@code HTTP_PROXY}, {@code ALL_PROXY} and
 * {@code NO_PROXY}, in upper or lower case. Loopback and link-local addresses are always reached directly. Immutable.
 */
final class EnvironmentProxySelector extends ProxySelector {
    private static final Logger LOG = LoggerFactory.getLogger(EnvironmentProxySelector.class);

    private final @Nullable Proxy http;
    private final @Nullable Proxy https;
    private final List<String> direct;

    private EnvironmentProxySelector(@Nullable Proxy http, @Nullable Proxy https, List<String> direct) {
        this.http = http;
        this.https = https;
        this.direct = direct;
    }

    /** Null if the environment does not name a proxy; the JVM's default selector applies then. */
    static @Nullable ProxySelector of(Map<String, String> environment) {
        String all = value(environment, "ALL_PROXY");
        Proxy http = proxy("HTTP_PROXY", value(environment, "HTTP_PROXY"), all);
        Proxy https = proxy("HTTPS_PROXY", value(environment, "HTTPS_PROXY"), all);
        if (http == null && https == null) {
            return null;
        }
        List<String> direct = new ArrayList<>();
        for (String host : value(environment, "NO_PROXY").split("[, ]+", -1)) {
            if (!host.isEmpty()) {
                direct.add(host.toLowerCase(Locale.ROOT).replaceFirst("^\\*?\\.", ""));
            }
        }
        return new EnvironmentProxySelector(http, https, List.copyOf(direct));
    }

    private static String value(Map<String, String> environment, String name) {
        String small = environment.get(name.toLowerCase(Locale.ROOT));
        return small != null && !small.isEmpty() ? small : environment.getOrDefault(name, "");
    }

    private static @Nullable Proxy proxy(String name, String own, String all) {
        String text = own.isEmpty() ? all : own;
        if (text.isEmpty()) {
            return null;
        }
        try {
            URI uri = new URI(text.contains("://") ? text : "http://" + text);
            if (uri.getHost() != null && uri.getUserInfo() == null && "http".equals(uri.getScheme())) {
                return new Proxy(
                        Proxy.Type.HTTP,
                        InetSocketAddress.createUnresolved(uri.getHost(), uri.getPort() < 0 ? 80 : uri.getPort()));
            }
        } catch (URISyntaxException e) {
            // Reported below.
        }
        LOG.warn(
                "{} is not used: expected http://host:port without a user; downloads go to their stores directly",
                name);
        return null;
    }

    @Override
    public List<Proxy> select(URI uri) {
        Proxy proxy = "https".equalsIgnoreCase(uri.getScheme()) ? https : http;
        return List.of(proxy == null || direct(uri) ? Proxy.NO_PROXY : proxy);
    }

    private boolean direct(URI uri) {
        String host = String.valueOf(uri.getHost()).toLowerCase(Locale.ROOT);
        if (host.equals("localhost")
                || host.startsWith("127.")
                || host.startsWith("169.254.")
                || host.equals("[::1]")
                || host.startsWith("[fe80:")
                || host.startsWith("[fd00:ec2:")) {
            return true;
        }
        for (String one : direct) {
            String name = one.replaceFirst(":\\d+$", "");
            boolean port = name.equals(one) || one.endsWith(":" + uri.getPort());
            if (one.equals("*") || port && (host.equals(name) || host.endsWith("." + name))) {
                return true;
            }
        }
        return false;
    }

    @Override
    public void connectFailed(URI uri, SocketAddress address, IOException failure) {
        LOG.debug("the proxy {} cannot be reached", address, failure);
    }
}
