// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.localmodel;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The names that KServe gives to what belongs to a cached model: labels and annotations of services, claims, folders,
 * keys of statuses. Stateless.
 */
public final class CachedModels {
    private static final String INTERNAL = "internal.serving.kserve.io/";
    static final String LABEL = INTERNAL + "localmodel";
    static final String NAMESPACE_LABEL = INTERNAL + "localmodel-namespace";
    static final String SOURCE = INTERNAL + "localmodel-sourceuri";
    static final String CLAIM = INTERNAL + "localmodel-pvc-name";
    static final String OPT_OUT = "serving.kserve.io/disable-localmodel";
    static final String NODE_GROUP = "serving.kserve.io/nodegroup";

    /** The folder of the models in the volume of a group. */
    public static final String MODELS = "models";

    private CachedModels() {}

    /** The folder of a model: the first 16 hexadecimal digits of the SHA-256 of its URI. */
    public static String folder(String uri) {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(uri.getBytes(StandardCharsets.UTF_8));
            return HexFormat.of().formatHex(digest, 0, 8);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }

    /** The claim by which services use a cache on the nodes of a group. */
    static String claim(String cache, String group) {
        return cache + "-" + group;
    }

    /**
     * Where a pod finds its model when its annotations name a claim of a cache.
     *
     * @param uri the model's URI
     * @return {@code pvc://CLAIM/models/FOLDER/} and the rest of the URI; null when the cache does not have the model
     */
    public static @Nullable String claimUri(String uri, Map<String, String> annotations) {
        String claim = annotations.get(CLAIM);
        String source = annotations.get(SOURCE);
        if (claim == null || source == null || !isIn(uri, source)) {
            return null;
        }
        String rest = uri.substring(source.length());
        return "pvc://" + claim + "/" + MODELS + "/" + folder(source) + (rest.startsWith("/") ? "" : "/") + rest;
    }

    /** Whether a URI is a source or below it. */
    static boolean isIn(String uri, String source) {
        return uri.equals(source) || !source.isEmpty() && uri.startsWith(source.endsWith("/") ? source : source + "/");
    }

    /** The URI of the predictor's model; empty for none. */
    static String uri(ObjectNode service) {
        for (JsonNode part : service.path("spec").path("predictor")) {
            JsonNode uri = part.path("storageUri");
            if (part.isObject() && uri.isTextual()) {
                return uri.textValue();
            }
        }
        return "";
    }

    /**
     * The keys of the models in {@code status.modelStatus} of a LocalModelNode, in the order of the list: the name of the
     * cache after its namespace. A model that a node has in several groups has the group in its further keys.
     *
     * @param models {@code spec.localModels}
     */
    public static List<String> statusKeys(JsonNode models) {
        List<String> keys = new ArrayList<>();
        Set<String> taken = new HashSet<>();
        for (JsonNode model : models) {
            String namespace = model.path("namespace").asText("");
            String name = model.path("modelName").asText("");
            String key = namespace.isEmpty() ? name : namespace + "/" + name;
            if (!taken.add(key)) {
                key = key + "@" + model.path("nodeGroup").asText("");
                taken.add(key);
            }
            keys.add(key);
        }
        return keys;
    }
}
