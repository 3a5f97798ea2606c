// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.kubernetes.node;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.Container;
import io.fabric8.kubernetes.api.model.EnvFromSource;
import io.fabric8.kubernetes.api.model.EnvVar;
import io.fabric8.kubernetes.api.model.EnvVarSource;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.Quantity;
import io.fabric8.kubernetes.api.model.Secret;
import io.fabric8.kubernetes.client.KubernetesClient;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** The values that a pod's containers take from the pod and from ConfigMaps and Secrets. Stateless but for the client. */
final class PodValues {
    private static final Pattern REFERENCE = Pattern.compile("\\$\\$|\\$\\(([-._a-zA-Z][-._a-zA-Z0-9]*)\\)");
    private static final Pattern SUBSCRIPT = Pattern.compile("metadata\\.(labels|annotations)\\['(.+)'\\]");

    private final KubernetesClient client;
    private final Pod pod;
    private final String address;

    PodValues(KubernetesClient client, Pod pod, String address) {
        this.client = client;
        this.pod = pod;
        this.address = address;
    }

    /** The variables of a container; fails when something that it names does not exist. */
    Map<String, String> environment(Container container) throws IOException {
        Map<String, String> values = new LinkedHashMap<>();
        values.put("KUBERNETES_SERVICE_HOST", ServiceProxy.API_ADDRESS);
        values.put("KUBERNETES_SERVICE_PORT", "443");
        for (EnvFromSource source : container.getEnvFrom()) {
            String prefix = source.getPrefix() == null ? "" : source.getPrefix();
            Map<String, String> all = source.getConfigMapRef() != null
                    ? configMap(
                            source.getConfigMapRef().getName(),
                            source.getConfigMapRef().getOptional())
                    : secret(
                            source.getSecretRef().getName(),
                            source.getSecretRef().getOptional());
            all.forEach((name, value) -> values.put(prefix + name, value));
        }
        for (EnvVar variable : container.getEnv()) {
            String value = variable.getValueFrom() == null
                    ? variable.getValue() == null ? "" : variable.getValue()
                    : from(container, variable.getValueFrom());
            if (value != null) {
                values.put(variable.getName(), expanded(value, values));
            }
        }
        return values;
    }

    private @Nullable String from(Container container, EnvVarSource source) throws IOException {
        if (source.getFieldRef() != null) {
            return field(source.getFieldRef().getFieldPath());
        }
        if (source.getResourceFieldRef() != null) {
            return resource(container, source.getResourceFieldRef().getResource());
        }
        if (source.getConfigMapKeyRef() != null) {
            var key = source.getConfigMapKeyRef();
            return key(configMap(key.getName(), key.getOptional()), key.getName(), key.getKey(), key.getOptional());
        }
        var key = source.getSecretKeyRef();
        return key(secret(key.getName(), key.getOptional()), key.getName(), key.getKey(), key.getOptional());
    }

    private static @Nullable String key(Map<String, String> all, String name, String key, @Nullable Boolean optional)
            throws IOException {
        String value = all.get(key);
        if (value == null && !Boolean.TRUE.equals(optional)) {
            throw new IOException("couldn't find key " + key + " in " + name);
        }
        return value;
    }

    /** A field of the downward API. */
    String field(String path) throws IOException {
        Matcher subscript = SUBSCRIPT.matcher(path);
        if (subscript.matches()) {
            Map<String, String> map = subscript.group(1).equals("labels")
                    ? pod.getMetadata().getLabels()
                    : pod.getMetadata().getAnnotations();
            return map == null ? "" : map.getOrDefault(subscript.group(2), "");
        }
        return switch (path) {
            case "metadata.name" -> pod.getMetadata().getName();
            case "metadata.namespace" -> pod.getMetadata().getNamespace();
            case "metadata.uid" -> pod.getMetadata().getUid();
            case "metadata.labels" -> lines(pod.getMetadata().getLabels());
            case "metadata.annotations" -> lines(pod.getMetadata().getAnnotations());
            case "spec.nodeName" -> pod.getSpec().getNodeName();
            case "spec.serviceAccountName" -> pod.getSpec().getServiceAccountName();
            case "status.podIP", "status.podIPs" -> address;
            case "status.hostIP", "status.hostIPs" -> PodNetwork.NODE_ADDRESS;
            default -> throw new IOException("the node has no field " + path);
        };
    }

    private static String lines(@Nullable Map<String, String> map) {
        List<String> lines = new ArrayList<>();
        new TreeMap<>(map == null ? Map.of() : map).forEach((name, value) -> lines.add(name + "=\"" + value + "\""));
        return String.join("\n", lines);
    }

    private static String resource(Container container, String path) throws IOException {
        String[] parts = path.split("\\.", 2);
        Map<String, Quantity> values = container.getResources() == null
                ? Map.of()
                : parts[0].equals("limits")
                        ? container.getResources().getLimits()
                        : container.getResources().getRequests();
        Quantity value = values == null ? null : values.get(parts[1]);
        if (value == null) {
            throw new IOException("the container has no " + path);
        }
        java.math.BigDecimal amount = Quantity.getAmountInBytes(value);
        return amount.setScale(0, java.math.RoundingMode.CEILING).toPlainString();
    }

    /** The texts of a ConfigMap; fails when it does not exist and is not optional. */
    Map<String, String> configMap(String name, @Nullable Boolean optional) throws IOException {
        ConfigMap map = client.configMaps()
                .inNamespace(pod.getMetadata().getNamespace())
                .withName(name)
                .get();
        if (map == null && !Boolean.TRUE.equals(optional)) {
            throw new IOException("configmap \"" + name + "\" not found");
        }
        return map == null || map.getData() == null ? Map.of() : map.getData();
    }

    /** The values of a Secret; fails when it does not exist and is not optional. */
    Map<String, String> secret(String name, @Nullable Boolean optional) throws IOException {
        Secret secret = client.secrets()
                .inNamespace(pod.getMetadata().getNamespace())
                .withName(name)
                .get();
        if (secret == null && !Boolean.TRUE.equals(optional)) {
            throw new IOException("secret \"" + name + "\" not found");
        }
        Map<String, String> values = new TreeMap<>();
        if (secret != null && secret.getData() != null) {
            secret.getData()
                    .forEach((key, value) ->
                            values.put(key, new String(Base64.getDecoder().decode(value), StandardCharsets.UTF_8)));
        }
        return values;
    }

    /** The words of a command with {@code $(NAME)} replaced, as Kubernetes does: an unknown name stays as it is. */
    static List<String> expanded(List<String> words, Map<String, String> values) {
        return words.stream().map(word -> expanded(word, values)).toList();
    }

    private static String expanded(String text, Map<String, String> values) {
        return REFERENCE
                .matcher(text)
                .replaceAll(found -> Matcher.quoteReplacement(
                        found.group(1) == null ? "$" : values.getOrDefault(found.group(1), found.group())));
    }
}
