// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.connection;

import io.nereid.base.ServingException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.URI;
import java.util.Locale;

/**
 * The address of a server as a URL of a command line. Immutable.
 *
 * @param url the URL without a slash at its end
 */
public record ServerAddress(String url) {
    /**
     * Reads a URL; {@code http://} may be left out.
     *
     * @throws ServingException INVALID_ARGUMENT when the text is not the URL of a server
     */
    public static ServerAddress of(String text) {
        String full = text.contains("://") ? text : "http://" + text;
        String url = full.endsWith("/") ? full.substring(0, full.length() - 1) : full;
        URI uri;
        try {
            uri = URI.create(url);
        } catch (IllegalArgumentException e) {
            throw wrong(text);
        }
        String scheme = String.valueOf(uri.getScheme()).toLowerCase(Locale.ROOT);
        if (uri.getHost() == null
                || !(scheme.equals("http") || scheme.equals("https"))
                || uri.getUserInfo() != null
                || uri.getQuery() != null) {
            throw wrong(text);
        }
        return new ServerAddress(url);
    }

    private static ServingException wrong(String text) {
        // what stands before an @ may be a password
        return ServingException.invalidArgument(
                "'" + text.replaceFirst("//[^/@]*@", "//…@") + "' is not a server's address",
                "for example: http://127.0.0.1:8080, or https://models.example.com");
    }

    /** Whether connections are encrypted. */
    public boolean encrypted() {
        return "https".equalsIgnoreCase(uri().getScheme());
    }

    /** Scheme, host and port in lower case: what a token is stored for. */
    public String origin() {
        int port = uri().getPort();
        return (encrypted() ? "https://" : "http://") + host() + ":" + (port >= 0 ? port : encrypted() ? 443 : 80);
    }

    /** Whether the host is written as this machine's loopback interface. No name is resolved. */
    public boolean isLoopback() {
        String host = host();
        return host.equals("localhost") || host.equals("[::1]") || host.matches("127\\.\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}");
    }

    /** Whether the server is on this machine, by whatever name or address of it. Resolves the name. */
    public boolean isThisMachine() {
        if (isLoopback()) {
            return true;
        }
        try {
            InetAddress address = InetAddress.getByName(host());
            return address.isLoopbackAddress() || NetworkInterface.getByInetAddress(address) != null;
        } catch (IOException e) {
            return false; // the request to it says why
        }
    }

    private String host() {
        return String.valueOf(uri().getHost()).toLowerCase(Locale.ROOT);
    }

    private URI uri() {
        return URI.create(url);
    }
}
