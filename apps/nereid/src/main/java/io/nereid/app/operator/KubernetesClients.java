// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.File;
import java.net.URI;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.jspecify.annotations.Nullable;

/** Creates the clients of the programs that run in a cluster. Stateless. */
final class KubernetesClients {
    /** The client warns of each kind whose version is not stable, as KServe's are. Kept, for loggers are weakly held. */
    private static final Logger VERSIONS =
            Logger.getLogger("io.fabric8.kubernetes.client.dsl.internal.VersionUsageUtils");

    private KubernetesClients() {}

    /**
     * Creates a client, which the caller closes.
     *
     * @param kubeconfig the kubeconfig file; null for the one of the environment or the pod's service account
     * @param timeoutMillis the time limit of a request
     * @throws ServingException NOT_FOUND when there is no such file
     */
    static KubernetesClient create(@Nullable String kubeconfig, int timeoutMillis) {
        return new KubernetesClientBuilder()
                .withConfig(config(kubeconfig, timeoutMillis))
                .build();
    }

    /** Creates a client for an address and a token, as {@link #create} does for those of a pod. */
    static KubernetesClient create(URI server, String token, String namespace, int timeoutMillis) {
        VERSIONS.setLevel(Level.SEVERE);
        Config config = Config.empty();
        config.setMasterUrl(server.toString());
        config.setOauthToken(token);
        config.setNamespace(namespace);
        return new KubernetesClientBuilder()
                .withConfig(configured(config, timeoutMillis))
                .build();
    }

    /** Creates a client that makes each request once: it fails at once while the API server is away. */
    static KubernetesClient once(@Nullable String kubeconfig, int timeoutMillis) {
        Config config = config(kubeconfig, timeoutMillis);
        config.setRequestRetryBackoffLimit(0);
        return new KubernetesClientBuilder().withConfig(config).build();
    }

    private static Config config(@Nullable String kubeconfig, int timeoutMillis) {
        VERSIONS.setLevel(Level.SEVERE);
        Config config;
        if (kubeconfig == null) {
            config = Config.autoConfigure(null);
        } else {
            File file = new File(kubeconfig);
            if (!file.isFile()) {
                throw ServingException.of(
                        ErrorCode.NOT_FOUND, "--kubeconfig: the file " + kubeconfig + " does not exist");
            }
            config = Config.fromKubeconfig(file);
        }
        boolean certified = config.getClientCertData() != null || config.getClientCertFile() != null;
        if (certified && config.getOauthToken() == null && config.getAutoOAuthToken() == null) {
            // Certificates alone. The client would read the kubeconfig again before each request to look for a token.
            config.setOauthTokenProvider(() -> null);
        }
        return configured(config, timeoutMillis);
    }

    private static Config configured(Config config, int timeoutMillis) {
        // The frames and streams of HTTP/2 cost both sides more than a few connections do.
        config.setHttp2Disable(true);
        config.setRequestTimeout(timeoutMillis);
        config.setConnectionTimeout(timeoutMillis);
        return config;
    }

    /** The namespace of the pod or of the kubeconfig. */
    static String namespace(KubernetesClient client) {
        String namespace = client.getNamespace();
        return namespace == null ? "default" : namespace;
    }
}
