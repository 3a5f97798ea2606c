// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.kubernetes.node;

import io.fabric8.kubernetes.api.model.Container;
import io.fabric8.kubernetes.api.model.ContainerPort;
import io.fabric8.kubernetes.api.model.ExecAction;
import io.fabric8.kubernetes.api.model.HTTPGetAction;
import io.fabric8.kubernetes.api.model.HTTPHeader;
import io.fabric8.kubernetes.api.model.IntOrString;
import io.fabric8.kubernetes.api.model.Probe;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.HttpsURLConnection;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509TrustManager;
import org.jspecify.annotations.Nullable;

/**
 * One probe of a running container: when it is due, and what its last results mean. A new one is made for each start of the
 * container. Not thread-safe.
 */
final class ContainerProbe {
    private final Probe probe;
    private final Container container;
    private final String address;
    private final long pid;
    private long due;
    private int successes;
    private int failures;

    /** @param now the time of the container's start, in milliseconds */
    ContainerProbe(Probe probe, Container container, String address, long pid, long now) {
        this.probe = probe;
        this.container = container;
        this.address = address;
        this.pid = pid;
        this.due = now + seconds(probe.getInitialDelaySeconds(), 0) * 1000L;
    }

    private static int seconds(@Nullable Integer value, int otherwise) {
        return value == null ? otherwise : value;
    }

    /** Runs the probe if it is due; blocks for its timeout at most. */
    void look(long now) {
        if (now < due) {
            return;
        }
        due = now + seconds(probe.getPeriodSeconds(), 10) * 1000L;
        if (succeeds()) {
            successes++;
            failures = 0;
        } else {
            failures++;
            successes = 0;
        }
    }

    /** Makes it due at once. */
    void hasten() {
        due = 0;
    }

    boolean passed() {
        return successes >= seconds(probe.getSuccessThreshold(), 1);
    }

    boolean failed() {
        return failures >= seconds(probe.getFailureThreshold(), 3);
    }

    private boolean succeeds() {
        int timeout = seconds(probe.getTimeoutSeconds(), 1) * 1000;
        try {
            if (probe.getHttpGet() != null) {
                int status = get(probe.getHttpGet(), container, address, timeout);
                return status >= 200 && status < 400;
            }
            if (probe.getExec() != null) {
                return exec(probe.getExec(), pid, timeout) == 0;
            }
            if (probe.getTcpSocket() != null) {
                try (Socket socket = new Socket()) {
                    socket.connect(
                            new InetSocketAddress(
                                    address, port(probe.getTcpSocket().getPort(), container)),
                            timeout);
                    return true;
                }
            }
            throw new IOException("the node runs no gRPC probes");
        } catch (IOException e) {
            return false;
        }
    }

    /** Sends a GET request, with any certificate of the server, and returns the status. */
    static int get(HTTPGetAction action, Container container, String address, int timeout) throws IOException {
        String scheme = "HTTPS".equals(action.getScheme()) ? "https" : "http";
        String host = action.getHost() == null ? address : action.getHost();
        String path = action.getPath() == null ? "/" : action.getPath();
        HttpURLConnection connection =
                (HttpURLConnection) URI.create(scheme + "://" + host + ":" + port(action.getPort(), container) + path)
                        .toURL()
                        .openConnection();
        try {
            if (connection instanceof HttpsURLConnection secure) {
                secure.setSSLSocketFactory(anyCertificate().getSocketFactory());
                secure.setHostnameVerifier((name, session) -> true);
            }
            connection.setConnectTimeout(timeout);
            connection.setReadTimeout(timeout);
            connection.setInstanceFollowRedirects(false);
            connection.setRequestProperty("Connection", "close");
            for (HTTPHeader header : action.getHttpHeaders()) {
                connection.setRequestProperty(header.getName(), header.getValue());
            }
            return connection.getResponseCode();
        } finally {
            connection.disconnect();
        }
    }

    private static SSLContext anyCertificate() throws IOException {
        X509TrustManager any = new X509TrustManager() {
            @Override
            public void checkClientTrusted(X509Certificate[] chain, String type) {}

            @Override
            public void checkServerTrusted(X509Certificate[] chain, String type) {}

            @Override
            public X509Certificate[] getAcceptedIssuers() {
                return new X509Certificate[0];
            }
        };
        try {
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, new TrustManager[] {any}, new SecureRandom());
            return context;
        } catch (GeneralSecurityException e) {
            throw new IOException(e);
        }
    }

    /** Runs a command in the namespaces of a container's program and returns its exit status; fails when it takes too long. */
    static int exec(ExecAction action, long pid, int timeout) throws IOException {
        List<String> command =
                new ArrayList<>(List.of("nsenter", "-t", Long.toString(pid), "--mount", "--net", "--root", "--wd"));
        command.addAll(action.getCommand());
        Process process = new ProcessBuilder(command)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        try {
            if (!process.waitFor(timeout, TimeUnit.MILLISECONDS)) {
                process.destroyForcibly();
                throw new IOException("the command took more than " + timeout + " ms");
            }
            return process.exitValue();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted", e);
        }
    }

    private static int port(IntOrString port, Container container) throws IOException {
        if (port.getIntVal() != null) {
            return port.getIntVal();
        }
        for (ContainerPort one : container.getPorts()) {
            if (port.getStrVal().equals(one.getName())) {
                return one.getContainerPort();
            }
        }
        throw new IOException("the container has no port " + port.getStrVal());
    }
}
