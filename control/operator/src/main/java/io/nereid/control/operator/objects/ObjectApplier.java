// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.objects;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.kubernetes.apply.ApplyDifference;
import io.nereid.control.kubernetes.cluster.ModelConfigMap;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.objects.ServiceObjects.ObjectKey;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes the objects of a service the desired ones: applies those that differ from what the cluster has, and deletes the
 * others that the service controls. An object that is up to date costs no call. Thread-safe for different services.
 */
public final class ObjectApplier {
    private static final Logger LOG = LoggerFactory.getLogger(ObjectApplier.class);

    /** The field manager of the numbers of replicas. */
    private static final String SCALER = "nereid-autoscaler";

    private final ClusterClient client;
    private final ServiceObjects objects;

    public ObjectApplier(ClusterClient client, ServiceObjects objects) {
        this.client = client;
        this.objects = objects;
    }

    /**
     * Applies the desired objects in their order, and then deletes the ones that are not desired.
     *
     * @param uid the uid of the service, which every desired object names as its controller
     * @param desired an object with a {@code resourceVersion} is a stored one that stays as it is
     * @return the object that the API server refuses; null when everything is as desired. After a refusal the objects that
     *     follow are as they were before
     * @throws ServingException for what may pass by itself, such as an API server that is away
     */
    public @Nullable Refusal apply(String uid, List<ObjectNode> desired) {
        Map<ObjectKey, ObjectNode> stored = objects.of(uid);
        Set<ObjectKey> wanted = new HashSet<>();
        for (ObjectNode object : desired) {
            ObjectKey key = ObjectKey.of(object);
            wanted.add(key);
            if (object.path("metadata").has("resourceVersion")) {
                // An object that is there and stays as it is.
                continue;
            }
            ObjectNode before = stored.get(key);
            if (before == null && key.kind().equals("ConfigMap")) {
                before = configMap(object);
                if (before != null && ModelConfigMap.isOne(key.name())) {
                    // Its models are of those who write them, perhaps since the plan was made.
                    object.set("data", before.path("data").deepCopy());
                }
            }
            String difference = before == null
                    ? "it does not exist"
                    : ApplyDifference.find(object, before, ClusterClient.FIELD_MANAGER);
            if (difference != null) {
                LOG.debug("{} {} is applied: {}", key.kind(), key.name(), difference);
                try {
                    ResourceKind kind = objects.kind(object);
                    if (before != null && FieldTransfer.isNeeded(before) && !keepsTemplate(object)) {
                        FieldTransfer.run(
                                client,
                                kind,
                                object.path("metadata").path("namespace").asText(),
                                key.name());
                    }
                    objects.written(kind, client.apply(kind, object));
                } catch (ServingException e) {
                    if (!isRefusal(e.code())) {
                        throw e;
                    }
                    return new Refusal(object, e.getMessage());
                }
            }
        }
        stored.forEach((key, object) -> {
            if (!wanted.contains(key) && !object.path("metadata").has("deletionTimestamp")) {
                LOG.debug("{} {} is deleted: it is not planned any more", key.kind(), key.name());
                client.delete(
                        objects.kind(object),
                        object.path("metadata").path("namespace").asText(),
                        key.name(),
                        null);
            }
        });
        return null;
    }

    /** Whether an apply leaves the template of a Deployment to its other manager, who then owns the rest of it as well. */
    private static boolean keepsTemplate(ObjectNode object) {
        return object.path("kind").asText().equals("Deployment")
                && !object.path("spec").has("template");
    }

    /**
     * Applies a ConfigMap that services share, if something differs.
     *
     * @throws ServingException as {@link ClusterClient#apply}
     */
    public void applyShared(ObjectNode map) {
        ObjectNode before = configMap(map);
        if (before == null || ApplyDifference.find(map, before, ClusterClient.FIELD_MANAGER) != null) {
            client.apply(ResourceKinds.CONFIG_MAP, map);
        }
    }

    /** Few services have ConfigMaps: they are read when one has, since a watch would bring all of the cluster. */
    private @Nullable ObjectNode configMap(ObjectNode map) {
        JsonNode metadata = map.path("metadata");
        return client.get(
                ResourceKinds.CONFIG_MAP,
                metadata.path("namespace").asText(),
                metadata.path("name").asText());
    }

    /**
     * Sets the number of replicas of a Deployment, which belongs to the field manager {@value #SCALER} from then on.
     *
     * @param deployment the stored one
     * @throws ServingException when the API server refuses it
     */
    public void scale(ObjectNode deployment, int replicas) {
        JsonNode metadata = deployment.path("metadata");
        ObjectNode scaled = JsonNodeFactory.instance.objectNode();
        scaled.put("apiVersion", deployment.path("apiVersion").asText());
        scaled.put("kind", deployment.path("kind").asText());
        scaled.putObject("metadata")
                .put("name", metadata.path("name").asText())
                .put("namespace", metadata.path("namespace").asText())
                .put("uid", metadata.path("uid").asText());
        scaled.putObject("spec").put("replicas", replicas);
        ResourceKind kind = objects.kind(deployment);
        objects.written(kind, client.forceAs(SCALER, kind, scaled));
    }

    private static boolean isRefusal(ErrorCode code) {
        return code == ErrorCode.INVALID_ARGUMENT
                || code == ErrorCode.PERMISSION_DENIED
                || code == ErrorCode.FAILED_PRECONDITION;
    }

    /**
     * An object that the API server does not take.
     *
     * @param object the object
     * @param message the words of the API server
     */
    public record Refusal(ObjectNode object, String message) {}
}
