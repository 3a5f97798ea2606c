// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.certificate;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ClusterKinds;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes and renews the certificate of the webhook in a Secret, and puts the certificates of its authorities into the
 * ValidatingWebhookConfiguration and the MutatingWebhookConfiguration. Run by the leader alone; a replica that still believes to lead does no harm, since the
 * Secret is replaced by version. Looks every minute, so that a deleted Secret and an overwritten bundle come back.
 *
 * <p>Thread-safe. Errors of the API server are logged, and the next look tries again.
 */
public final class CertificateKeeper implements AutoCloseable {
    /** The name of the Secret. */
    public static final String SECRET = "nereid-webhook-certificate";

    private static final Duration INTERVAL = Duration.ofMinutes(1);
    private static final Logger LOG = LoggerFactory.getLogger(CertificateKeeper.class);

    private final ClusterClient client;
    private final Clock clock;
    private final String namespace;
    private final String configuration;
    private final List<String> hosts;
    private final ScheduledThreadPoolExecutor timer = Threads.timer("nereid-certificate");

    /**
     * Creates a keeper that does nothing before {@link #start}.
     *
     * @param namespace the namespace of the Secret
     * @param configuration the name of the ValidatingWebhookConfiguration and of the MutatingWebhookConfiguration
     * @param hosts the names under which the API server calls the webhook, see {@link #hosts}
     */
    public CertificateKeeper(
            ClusterClient client, Clock clock, String namespace, String configuration, List<String> hosts) {
        this.client = client;
        this.clock = clock;
        this.namespace = namespace;
        this.configuration = configuration;
        this.hosts = List.copyOf(hosts);
    }

    /** The names of a Service within a cluster. */
    public static List<String> hosts(String service, String namespace) {
        return List.of(service + "." + namespace + ".svc", service + "." + namespace + ".svc.cluster.local");
    }

    /** Looks now and every minute, on a thread of its own. */
    public void start() {
        var unused = timer.scheduleWithFixedDelay(this::look, 0, INTERVAL.toSeconds(), TimeUnit.SECONDS);
    }

    private void look() {
        try {
            maintain();
        } catch (RuntimeException e) {
            LOG.warn(
                    "the certificate of the webhook cannot be kept up to date: {}",
                    ServingException.from(e).describe());
        }
    }

    /**
     * Brings Secret and configuration up to date. Blocks for three to five requests.
     *
     * @throws ServingException when the API server refuses or is away
     */
    public void maintain() {
        Instant now = Instant.ofEpochMilli(clock.millis());
        ObjectNode secret = client.get(ResourceKinds.SECRET, namespace, SECRET);
        WebhookCertificates found = secret == null ? null : WebhookCertificates.read(secret);
        WebhookCertificates wanted =
                found == null ? WebhookCertificates.make(hosts, now) : found.maintained(hosts, now);
        if (!wanted.equals(found)) {
            write(secret, wanted);
        }
        trust(ClusterKinds.VALIDATING_WEBHOOK_CONFIGURATION, wanted.bundle());
        trust(ClusterKinds.MUTATING_WEBHOOK_CONFIGURATION, wanted.bundle());
    }

    private void write(@Nullable ObjectNode secret, WebhookCertificates certificates) {
        ObjectNode written = secret == null ? JsonNodeFactory.instance.objectNode() : secret.deepCopy();
        written.put("apiVersion", "v1").put("kind", "Secret").put("type", "kubernetes.io/tls");
        ObjectNode metadata = written.withObjectProperty("metadata");
        metadata.put("name", SECRET).put("namespace", namespace);
        metadata.withObjectProperty("labels").put("app.kubernetes.io/part-of", "nereid");
        written.set("data", certificates.data());
        try {
            if (secret == null) {
                client.create(ResourceKinds.SECRET, written);
            } else {
                client.update(ResourceKinds.SECRET, written);
            }
            LOG.info("the certificate of the webhook is new in the Secret {}/{}", namespace, SECRET);
        } catch (ServingException e) {
            if (e.code() == ErrorCode.ABORTED || e.code() == ErrorCode.ALREADY_EXISTS) {
                throw ServingException.wrap(
                        ErrorCode.UNAVAILABLE, "another replica has written the Secret " + SECRET, e);
            }
            throw e;
        }
    }

    /** Puts the authorities into every webhook of the configuration, which keeps all its other fields. */
    private void trust(ResourceKind kind, String bundle) {
        ObjectNode now = client.get(kind, null, configuration);
        if (now == null) {
            LOG.warn(
                    "there is no {} {}: {}; apply the output of nereid operator manifests",
                    kind.kind(),
                    configuration,
                    kind.equals(ClusterKinds.MUTATING_WEBHOOK_CONFIGURATION)
                            ? "new pods of Deployments that KServe has made start without their models"
                            : "services are not validated before they are stored");
            return;
        }
        String encoded = Base64.getEncoder().encodeToString(bundle.getBytes(StandardCharsets.UTF_8));
        ObjectNode patch = JsonNodeFactory.instance.objectNode();
        patch.put("apiVersion", kind.apiVersion()).put("kind", kind.kind());
        patch.putObject("metadata").put("name", configuration);
        boolean different = false;
        for (JsonNode webhook : now.path("webhooks")) {
            different |=
                    !webhook.path("clientConfig").path("caBundle").asText("").equals(encoded);
            patch.withArrayProperty("webhooks")
                    .addObject()
                    .put("name", webhook.path("name").asText())
                    .putObject("clientConfig")
                    .put("caBundle", encoded);
        }
        if (different) {
            client.apply(kind, patch);
            LOG.info("{}: the API server trusts the authorities of the webhook's certificate", kind.kind());
        }
    }

    @Override
    public void close() {
        timer.shutdownNow();
    }
}
