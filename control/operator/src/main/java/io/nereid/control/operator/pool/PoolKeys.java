// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.pool;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.operator.cluster.ClusterClient;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.Base64;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.jspecify.annotations.Nullable;

/**
 * The keys by which the operator loads models in the pods of pools, which let others load none. All are derived from one
 * Secret in the operator's own namespace; the pods know the SHA-256 of their pool's key. Thread-safe; the first call
 * blocks for two requests to the API server.
 */
final class PoolKeys {
    /** The Secret. */
    static final String SECRET = "nereid-pools";

    private static final String FIELD = "key";
    private static final int BYTES = 32;
    private static final int ID_BYTES = 6;
    private static final int SECRET_BYTES = 24;

    private final ClusterClient client;
    private final String namespace;

    @GuardedBy("this") private byte @Nullable [] root;

    PoolKeys(ClusterClient client, String namespace) {
        this.client = client;
        this.namespace = namespace;
    }

    /**
     * A key in the form of the server's API keys.
     *
     * @param text what the operator sends
     */
    record Key(String id, String text, String sha256) {}

    /**
     * The key of a pool.
     *
     * @throws ServingException when the Secret can be neither read nor made
     */
    Key of(String poolNamespace, String pool) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(root(), "HmacSHA256"));
            byte[] derived = mac.doFinal((poolNamespace + "/" + pool).getBytes(StandardCharsets.UTF_8));
            String id = HexFormat.of().formatHex(derived, 0, ID_BYTES);
            String text = "nrd_" + id + "_" + HexFormat.of().formatHex(derived, ID_BYTES, ID_BYTES + SECRET_BYTES);
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
            return new Key(id, text, HexFormat.of().formatHex(digest));
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("every Java has HMAC with SHA-256", e);
        }
    }

    private synchronized byte[] root() {
        byte[] known = root;
        if (known != null) {
            return known;
        }
        ObjectNode secret = client.get(ResourceKinds.SECRET, namespace, SECRET);
        if (secret == null) {
            byte[] random = new byte[BYTES];
            new SecureRandom().nextBytes(random);
            ObjectNode made = JsonNodeFactory.instance.objectNode();
            made.put("apiVersion", "v1").put("kind", "Secret").put("type", "Opaque");
            ObjectNode metadata = made.putObject("metadata");
            metadata.put("name", SECRET).put("namespace", namespace);
            metadata.putObject("labels").put("app.kubernetes.io/part-of", "nereid");
            made.putObject("data").put(FIELD, Base64.getEncoder().encodeToString(random));
            secret = client.create(ResourceKinds.SECRET, made);
        }
        try {
            byte[] found =
                    Base64.getDecoder().decode(secret.path("data").path(FIELD).asText());
            if (found.length >= BYTES) {
                root = found;
                return found;
            }
        } catch (IllegalArgumentException e) {
            // the same message as for a short one
        }
        throw ServingException.of(
                ErrorCode.FAILED_PRECONDITION,
                "the Secret " + namespace + "/" + SECRET + " has no key of " + BYTES + " bytes in the field " + FIELD,
                "delete it: the operator makes another one, and the pods of pools are replaced");
    }
}
