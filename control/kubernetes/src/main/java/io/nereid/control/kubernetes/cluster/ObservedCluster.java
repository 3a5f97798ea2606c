// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * What is there of a service in its namespace. Immutable as long as the trees are not modified; the functions are called
 * while planning, on its thread, and may read from the cluster.
 *
 * @param objects the objects that the service owns, by {@link Trees#key}
 * @param pods the pods of its Deployments
 * @param status the last written status of the service; missing for none
 * @param secrets returns the secret of a name in the namespace; null for none
 * @param serviceAccounts returns the service account of a name in the namespace; null for none
 * @param configMaps returns the ConfigMap of a name in the operator's own namespace; null for none
 */
public record ObservedCluster(
        Map<String, ObjectNode> objects,
        List<ObjectNode> pods,
        JsonNode status,
        Function<String, @Nullable ObjectNode> secrets,
        Function<String, @Nullable ObjectNode> serviceAccounts,
        Function<String, @Nullable ObjectNode> configMaps) {
    /** The object of this kind and name; null for none. */
    public @Nullable ObjectNode object(String kind, String name) {
        return objects.get(Trees.key(kind, name));
    }
}
