// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.pod;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.kubernetes.cluster.ClusterSettings;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.cluster.Trees;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Gives a container the credentials of a service account's secrets, under the names that KServe's storage initialiser
 * reads: as references, never as values. The kind of a secret follows from its keys. Confined to one planning.
 */
final class StorageCredentials {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final List<String> STORAGE_TYPES = List.of("s3", "hdfs", "webhdfs");
    private static final String GOOGLE_PATH = "/var/secrets/";
    private static final String ROLE = "eks.amazonaws.com/role-arn";

    /** The variables of Azure, and the older key of each where there was one. */
    private static final Map<String, String> AZURE = Map.of(
            "AZURE_SUBSCRIPTION_ID", "AZ_SUBSCRIPTION_ID",
            "AZURE_TENANT_ID", "AZ_TENANT_ID",
            "AZURE_CLIENT_ID", "AZ_CLIENT_ID",
            "AZURE_CLIENT_SECRET", "AZ_CLIENT_SECRET",
            "AZURE_STORAGE_ACCESS_KEY", "",
            "AZURE_ACCESS_TOKEN", "",
            "AZURE_ACCESS_EXPIRES_ON_SECONDS", "",
            "AZURE_ACCOUNT_NAME", "",
            "AZURE_SERVICE_URL", "");

    private final ObservedCluster cluster;
    private final JsonNode settings;

    StorageCredentials(ObservedCluster cluster, ClusterSettings settings) {
        this.cluster = cluster;
        this.settings = settings.section("credentials");
    }

    /** The service account of a pod, also by the field's old name; empty for the namespace's default. */
    static String account(JsonNode pod) {
        String name = pod.path("serviceAccountName").asText("");
        return name.isEmpty() ? pod.path("serviceAccount").asText("") : name;
    }

    /**
     * Adds the credentials of a service account, or of the secret that the annotation names.
     *
     * @param account the service account's name; empty for the default one
     * @throws ServingException NOT_FOUND for a secret that is named and not there
     */
    void ofAccount(String account, Map<String, String> annotations, ObjectNode container, ObjectNode pod) {
        String name = account.isEmpty() ? "default" : account;
        ObjectNode found = cluster.serviceAccounts().apply(name);
        if (found == null) {
            return;
        }
        Map<String, String> own = Trees.map(found.path("metadata").path("annotations"));
        if (own.containsKey(ROLE)) {
            s3Variables(own, null, container);
        }
        String named =
                annotations.get(settings.path("storageSecretNameAnnotation").asText(""));
        if (named != null) {
            secret(named, container, pod);
            return;
        }
        for (JsonNode reference : found.path("secrets")) {
            secret(reference.path("name").asText(), container, pod);
        }
    }

    private void secret(String name, ObjectNode container, ObjectNode pod) {
        ObjectNode secret = cluster.secrets().apply(name);
        if (secret == null) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "secrets \"" + name + "\" not found; create it, or leave its name out of"
                            + " the service account or the annotation");
        }
        Set<String> keys = keys(secret);
        JsonNode s3 = settings.path("s3");
        String accessKey = orElse(s3.path("s3AccessKeyIDName").asText(""), "awsAccessKeyID");
        String secretKey = orElse(s3.path("s3SecretAccessKeyName").asText(""), "awsSecretAccessKey");
        String google = orElse(
                settings.path("gcs").path("gcsCredentialFileName").asText(""), "gcloud-application-credentials.json");
        if (keys.contains(secretKey)) {
            reference(container, "AWS_ACCESS_KEY_ID", name, accessKey);
            reference(container, "AWS_SECRET_ACCESS_KEY", name, secretKey);
            s3Variables(Trees.map(secret.path("metadata").path("annotations")), secret, container);
        } else if (keys.contains(google)) {
            // Of two such secrets the first counts: a container has one such file.
            volume(pod, "user-gcp-sa", name);
            if (mount(container, "user-gcp-sa", GOOGLE_PATH)) {
                Trees.env(container, "GOOGLE_APPLICATION_CREDENTIALS", GOOGLE_PATH + google);
            }
        } else if (isAzure(keys)) {
            azure(container, name, keys);
        } else if (keys.contains("https-host")) {
            if (keys.contains("headers")) {
                reference(container, value(secret, "https-host") + "-headers", name, "headers");
            }
        } else if (keys.contains("HDFS_NAMENODE")) {
            volume(pod, "hdfs-secrets", name);
            mount(container, "hdfs-secrets", "/var/secrets/kserve-hdfscreds");
        } else if (keys.contains("HF_TOKEN")) {
            reference(container, "HF_TOKEN", name, "HF_TOKEN");
        }
    }

    private static boolean isAzure(Set<String> keys) {
        return keys.contains("AZ_CLIENT_ID")
                || keys.contains("AZURE_CLIENT_ID")
                || keys.contains("AZURE_ACCESS_TOKEN")
                || keys.contains("AZURE_STORAGE_ACCESS_KEY");
    }

    private static void azure(ObjectNode container, String secret, Set<String> keys) {
        AZURE.forEach((variable, former) -> {
            if (keys.contains(former)) {
                reference(container, variable, secret, former);
            } else if (keys.contains(variable)) {
                reference(container, variable, secret, variable);
            }
        });
    }

    /** The settings of S3: of annotations, else of the secret's other keys, else of {@code inferenceservice-config}. */
    private void s3Variables(Map<String, String> annotations, @Nullable ObjectNode secret, ObjectNode container) {
        S3Values values = new S3Values(annotations, secret, settings.path("s3"));
        String endpoint = values.of("s3-endpoint", "S3_ENDPOINT", "s3Endpoint").strip();
        if (!endpoint.isEmpty()) {
            String https;
            String host = endpoint;
            String url = endpoint;
            if (endpoint.regionMatches(true, 0, "https://", 0, 8)) {
                https = "1";
                host = endpoint.substring(8);
            } else if (endpoint.regionMatches(true, 0, "http://", 0, 7)) {
                https = "0";
                host = endpoint.substring(7);
            } else {
                https = values.of("s3-usehttps", "S3_USE_HTTPS", "s3UseHttps");
                url = (https.equals("0") ? "http://" : "https://") + endpoint;
            }
            variable(container, "S3_USE_HTTPS", https);
            variable(container, "S3_ENDPOINT", host);
            variable(container, "AWS_ENDPOINT_URL", url);
        }
        variable(container, "S3_VERIFY_SSL", values.of("s3-verifyssl", "S3_VERIFY_SSL", "s3VerifySSL"));
        variable(
                container,
                "awsAnonymousCredential",
                values.of("s3-useanoncredential", "awsAnonymousCredential", "s3UseAnonymousCredential"));
        variable(container, "AWS_DEFAULT_REGION", values.of("s3-region", "AWS_DEFAULT_REGION", "s3Region"));
        variable(
                container,
                "S3_USER_VIRTUAL_BUCKET",
                values.of("s3-usevirtualbucket", "S3_USER_VIRTUAL_BUCKET", "s3UseVirtualBucket"));
        variable(container, "S3_USE_ACCELERATE", values.of("s3-useaccelerate", "S3_USE_ACCELERATE", "s3UseAccelerate"));
        variable(container, "AWS_CA_BUNDLE", values.of("s3-cabundle", "AWS_CA_BUNDLE", "s3CABundle"));
        variable(
                container,
                "AWS_CA_BUNDLE_CONFIGMAP",
                values.of("s3-cabundle-configmap", "AWS_CA_BUNDLE_CONFIGMAP", "s3CABundleConfigMap"));
    }

    /**
     * Adds the credentials of an entry of the storage secret, and completes URIs whose scheme only the entry determines.
     *
     * @param key the entry; empty for the default one
     * @param parameters parameters that override the entry's
     * @throws ServingException NOT_FOUND or INVALID_ARGUMENT for an entry that is not there, or that lacks something
     */
    void ofStorage(String key, Map<String, String> parameters, Map<String, String> annotations, ObjectNode container) {
        String secretName = orElse(settings.path("storageSpecSecretName").asText(""), "storage-config");
        String annotated =
                annotations.get(settings.path("storageSecretNameAnnotation").asText(""));
        secretName = annotated == null ? secretName : annotated;
        ObjectNode secret = cluster.secrets().apply(secretName);
        String type = parameters.getOrDefault("type", "");
        String bucket = parameters.getOrDefault("bucket", "");
        String entry = !key.isEmpty() ? key : type.isEmpty() ? "default" : "default_" + type;
        boolean there = secret != null && keys(secret).contains(entry);
        if (!there && !key.isEmpty()) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "specified storage key " + key + " not found in storage secret " + secretName
                            + "; add the entry to the secret, or name another one");
        }
        if (secret != null && there) {
            if (type.isEmpty()) {
                JsonNode data = entry(secret, entry, secretName);
                type = data.path("type").asText("");
                if (!type.isEmpty() && !STORAGE_TYPES.contains(type)) {
                    throw ServingException.invalidArgument("storage type must be one of " + STORAGE_TYPES
                            + ". storage type [" + type + "] of the key " + entry + " of the secret " + secretName
                            + " is not supported");
                }
                bucket = bucket.isEmpty() ? data.path("bucket").asText("") : bucket;
                variable(
                        container,
                        "AWS_CA_BUNDLE_CONFIGMAP",
                        data.path("cabundle_configmap").asText(""));
            }
            reference(container, "STORAGE_CONFIG", secretName, entry);
        }
        if (type.isEmpty()) {
            throw ServingException.invalidArgument("unable to determine storage type: neither storage.parameters.type"
                    + " nor an entry of the secret " + secretName + " names it; expected one of " + STORAGE_TYPES);
        }
        complete(container, type, bucket);
        if (!parameters.isEmpty()) {
            ObjectNode override = Trees.object();
            parameters.entrySet().stream()
                    .sorted(Map.Entry.comparingByKey())
                    .forEach(one -> override.put(one.getKey(), one.getValue()));
            Trees.setEnv(container, "STORAGE_OVERRIDE_CONFIG", override.toString());
        }
    }

    private static void complete(ObjectNode container, String type, String bucket) {
        List<String> args = new java.util.ArrayList<>();
        container.path("args").forEach(one -> args.add(one.asText()));
        if (args.isEmpty() || !args.get(0).startsWith(PodNames.PLACEHOLDER)) {
            return;
        }
        if (type.equals("s3") && bucket.isEmpty()) {
            throw ServingException.invalidArgument("format [s3] requires a bucket but one wasn't found in storage data"
                    + " or parameters; set storage.parameters.bucket, or bucket in the entry of the secret");
        }
        for (int i = 0; i < args.size(); i += 2) {
            String path = args.get(i).substring(PodNames.PLACEHOLDER.length());
            args.set(i, type + "://" + (type.equals("s3") ? bucket + "/" : "") + path);
        }
        Trees.texts(container, "args", args);
    }

    private static JsonNode entry(ObjectNode secret, String entry, String secretName) {
        try {
            return JSON.readTree(value(secret, entry));
        } catch (JsonProcessingException e) {
            throw ServingException.invalidArgument("invalid json encountered in key " + entry + " of storage secret "
                    + secretName + "; expected an object with type, and for s3 bucket");
        }
    }

    private static void variable(ObjectNode container, String name, String value) {
        if (!value.isEmpty()) {
            Trees.setEnv(container, name, value);
        }
    }

    private static void reference(ObjectNode container, String variable, String secret, String key) {
        ObjectNode there = Trees.named(Trees.list(container, "env"), variable);
        ObjectNode env = there == null ? Trees.list(container, "env").addObject() : there;
        env.put("name", variable);
        env.remove("value");
        env.putObject("valueFrom").putObject("secretKeyRef").put("name", secret).put("key", key);
    }

    private static void volume(ObjectNode pod, String name, String secret) {
        ObjectNode volume = Trees.object().put("name", name);
        volume.putObject("secret").put("secretName", secret);
        Trees.addNamed(pod, "volumes", volume);
    }

    private static boolean mount(ObjectNode container, String name, String path) {
        if (Trees.named(container.path("volumeMounts"), name) != null) {
            return false;
        }
        Trees.list(container, "volumeMounts")
                .addObject()
                .put("name", name)
                .put("mountPath", path)
                .put("readOnly", true);
        return true;
    }

    private static Set<String> keys(ObjectNode secret) {
        Set<String> keys = new HashSet<>();
        secret.path("data").fieldNames().forEachRemaining(keys::add);
        secret.path("stringData").fieldNames().forEachRemaining(keys::add);
        return keys;
    }

    private static String value(ObjectNode secret, String key) {
        JsonNode plain = secret.path("stringData").get(key);
        if (plain != null) {
            return plain.asText();
        }
        try {
            byte[] bytes =
                    Base64.getDecoder().decode(secret.path("data").path(key).asText(""));
            return new String(bytes, StandardCharsets.UTF_8);
        } catch (IllegalArgumentException e) {
            throw ServingException.invalidArgument(
                    "secret " + secret.path("metadata").path("name").asText() + ": " + key + " is not base64");
        }
    }

    private static String orElse(String value, String orElse) {
        return value.isEmpty() ? orElse : value;
    }

    private record S3Values(
            Map<String, String> annotations, @Nullable ObjectNode secret, JsonNode settings) {
        private String of(String annotation, String key, String setting) {
            String annotated = annotations.get(PodNames.GROUP + annotation);
            if (annotated != null) {
                return annotated;
            }
            if (secret != null && keys(secret).contains(key)) {
                return value(secret, key);
            }
            return settings.path(setting).asText("");
        }
    }
}
