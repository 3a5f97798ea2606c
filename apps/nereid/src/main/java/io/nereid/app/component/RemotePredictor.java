// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.component;

import io.nereid.base.ServingException;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.ForwardOptions;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.api.UpstreamClient.Header;
import io.nereid.transport.api.UpstreamResponse;
import java.net.URI;
import java.net.URISyntaxException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletionStage;

/** The predictor of a component, at the address that {@code --predictor_host} names. Immutable and thread-safe. */
final class RemotePredictor {
    private final UpstreamClient client;
    private final String url;
    private final ForwardOptions terms;

    /**
     * @param client closed by the caller
     * @param host as KServe passes it: a host, a host with its port, or a URL without a path
     * @param timeout the longest time of a request
     * @throws ServingException INVALID_ARGUMENT for another value
     */
    RemotePredictor(UpstreamClient client, String host, Duration timeout) {
        this.client = client;
        this.url = url(host);
        this.terms = new ForwardOptions(timeout, ForwardOptions.DEFAULT.maxBytes(), List.of());
    }

    /** The URL of a predictor, without a slash at its end. */
    static String url(String host) {
        String text = host.contains("://") ? host : "http://" + host;
        text = text.endsWith("/") ? text.substring(0, text.length() - 1) : text;
        try {
            URI uri = new URI(text);
            if (uri.getHost() == null && uri.getRawAuthority() != null) {
                // A name may not end with a label that begins with a digit, as namespaces may: DNS has it with this
                // ending, too.
                text = text.replaceFirst("^(https?://[^:/]+)", "$1.svc");
                uri = new URI(text);
            }
            boolean http = "http".equals(uri.getScheme()) || "https".equals(uri.getScheme());
            if (http && uri.getHost() != null && uri.getRawPath().isEmpty() && uri.getRawQuery() == null) {
                return text;
            }
        } catch (URISyntaxException e) {
            // said below
        }
        throw ServingException.invalidArgument("--predictor_host is '" + host
                + "' (expected: a host such as iris-predictor.default, with a port if it is not 80, or its URL)");
    }

    /** The address for the process of a component: without the scheme, unless it is https. */
    String address() {
        return url.startsWith("http://") ? url.substring("http://".length()) : url;
    }

    /**
     * Calls the predictor.
     *
     * @param body taken over
     * @return the whole response, whatever its status
     */
    CompletionStage<UpstreamResponse> call(String method, String target, List<Header> headers, MemoryRegion body) {
        byte[] bytes = new byte[body.size()];
        body.getBytes(0, bytes, 0, bytes.length);
        body.release();
        return client.send(method, url + target, headers, bytes, terms);
    }
}
