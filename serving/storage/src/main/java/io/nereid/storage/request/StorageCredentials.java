// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.request;

import io.nereid.base.ServingException;
import io.nereid.storage.Storage;
import io.nereid.storage.spi.StorageUri;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Turns Kubernetes-style secrets into the settings of {@link StorageRequest#credentials()}. Stateless. */
public final class StorageCredentials {
    private static final Logger LOG = LoggerFactory.getLogger(StorageCredentials.class);
    private static final String GROUP = "serving.kserve.io/";
    private static final List<String> TYPES = List.of("s3", "hdfs", "webhdfs");
    private static final String PLACEHOLDER = "<scheme-placeholder>://";
    private static final Map<String, String> S3_ENTRY = Map.of(
            "endpoint_url", "AWS_ENDPOINT_URL",
            "access_key_id", "AWS_ACCESS_KEY_ID",
            "secret_access_key", "AWS_SECRET_ACCESS_KEY",
            "session_token", "AWS_SESSION_TOKEN",
            "region", "AWS_DEFAULT_REGION",
            "ca_bundle", "AWS_CA_BUNDLE",
            "certificate", "AWS_CA_BUNDLE",
            "verify_ssl", "S3_VERIFY_SSL",
            "anonymous", "awsAnonymousCredential",
            "cabundle_configmap", "AWS_CA_BUNDLE_CONFIGMAP");
    private static final Set<String> HDFS_KEYS = Set.of(
            "HDFS_NAMENODE",
            "USER_PROXY",
            "HDFS_ROOTPATH",
            "TLS_CERT",
            "TLS_KEY",
            "TLS_CA",
            "TLS_SKIP_VERIFY",
            "HEADERS",
            "N_THREADS",
            "KERBEROS_KEYTAB",
            "KERBEROS_PRINCIPAL");
    private static final Set<String> FILES = Set.of("KERBEROS_KEYTAB", "TLS_CERT", "TLS_KEY", "TLS_CA");

    private StorageCredentials() {}

    /**
     * A secret. Immutable; its values are never shown.
     *
     * @param name of the secret
     * @param data decoded values by key
     * @param annotations of the secret
     */
    public record Secret(String name, Map<String, String> data, Map<String, String> annotations) {
        /** Copies the maps. */
        public Secret {
            data = Map.copyOf(data);
            annotations = Map.copyOf(annotations);
        }

        /** The name and the keys. */
        @Override
        public String toString() {
            return "Secret[" + name + ", keys=" + new TreeSet<>(data.keySet()) + "]";
        }
    }

    /**
     * The key names of secrets that the service's configuration may change ({@code credentials.s3} and
     * {@code credentials.gcs} of inferenceservice-config), and its presets for S3. Immutable.
     *
     * @param s3AccessKeyId {@code s3AccessKeyIDName}
     * @param s3SecretAccessKey {@code s3SecretAccessKeyName}
     * @param gcsFile {@code gcsCredentialFileName}
     * @param s3 presets by the names of the S3 annotations without their group: {@code s3-endpoint} and so on
     */
    public record Names(String s3AccessKeyId, String s3SecretAccessKey, String gcsFile, Map<String, String> s3) {
        /** Copies the map. */
        public Names {
            s3 = Map.copyOf(s3);
        }

        /** KServe's default names. */
        public static Names defaults() {
            return new Names(
                    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "gcloud-application-credentials.json", Map.of());
        }
    }

    /**
     * A storage URI and the credentials to fetch it with. Immutable.
     *
     * @param uri with its scheme and bucket
     * @param credentials for {@link StorageRequest#credentials()}
     */
    public record Location(String uri, Map<String, String> credentials) {
        /** Copies the map. */
        public Location {
            credentials = Map.copyOf(credentials);
        }

        /** The URI and the keys. */
        @Override
        public String toString() {
            return "Location[" + StorageUri.shown(uri) + ", credentials=" + new TreeSet<>(credentials.keySet()) + "]";
        }
    }

    /** As {@link #settings(List, Map, Names)}, with KServe's default names. */
    public static Map<String, String> settings(List<Secret> secrets, Map<String, String> accountAnnotations) {
        return settings(secrets, accountAnnotations, Names.defaults());
    }

    /**
     * Returns the settings from the secrets of a service account; later secrets override earlier ones. The keys of a
     * secret determine its type. A secret without a known key is ignored.
     *
     * @param secrets in the account's order
     * @param accountAnnotations annotations of the service account
     */
    public static Map<String, String> settings(
            List<Secret> secrets, Map<String, String> accountAnnotations, Names names) {
        Map<String, String> settings = new HashMap<>();
        String role = accountAnnotations.get("eks.amazonaws.com/role-arn");
        if (role != null) {
            settings.put("AWS_ROLE_ARN", role);
            s3(accountAnnotations, Map.of(), names, settings);
        }
        for (Secret secret : secrets) {
            add(secret, names, settings);
        }
        return settings;
    }

    private static void add(Secret secret, Names names, Map<String, String> settings) {
        Map<String, String> data = secret.data();
        boolean usual = data.containsKey("AWS_SECRET_ACCESS_KEY");
        boolean old = data.containsKey("awsSecretAccessKey");
        if (data.containsKey(names.s3SecretAccessKey()) || usual || old) {
            String id = data.containsKey(names.s3SecretAccessKey())
                    ? names.s3AccessKeyId()
                    : usual ? "AWS_ACCESS_KEY_ID" : "awsAccessKeyID";
            String key = data.containsKey(names.s3SecretAccessKey())
                    ? names.s3SecretAccessKey()
                    : usual ? "AWS_SECRET_ACCESS_KEY" : "awsSecretAccessKey";
            settings.remove("AWS_ROLE_ARN");
            settings.remove("AWS_SESSION_TOKEN");
            copy(data, id, settings, "AWS_ACCESS_KEY_ID");
            copy(data, key, settings, "AWS_SECRET_ACCESS_KEY");
            copy(data, "AWS_SESSION_TOKEN", settings, "AWS_SESSION_TOKEN");
            s3(secret.annotations(), data, names, settings);
            return;
        }
        if (hasS3Annotation(secret.annotations())) {
            // An anonymous bucket does not need keys, only its endpoint and region.
            s3(secret.annotations(), data, names, settings);
            return;
        }
        if (data.containsKey(names.gcsFile())) {
            copy(data, names.gcsFile(), settings, "GOOGLE_APPLICATION_CREDENTIALS");
            return;
        }
        boolean azure = false;
        for (String key : List.of("CLIENT_ID", "CLIENT_SECRET", "SUBSCRIPTION_ID", "TENANT_ID")) {
            azure |= copy(data, "AZ_" + key, settings, "AZ_" + key);
            azure |= copy(data, "AZURE_" + key, settings, "AZURE_" + key);
        }
        for (String key : List.of("AZURE_STORAGE_ACCESS_KEY", "AZURE_ACCESS_TOKEN", "AZURE_STORAGE_SAS_TOKEN")) {
            azure |= copy(data, key, settings, key);
        }
        if (azure) {
            return;
        }
        String host = data.get("https-host");
        if (host != null) {
            copy(data, "headers", settings, host.trim() + "-headers");
            return;
        }
        if (data.containsKey("HDFS_NAMENODE")) {
            HDFS_KEYS.forEach(key -> copy(data, key, settings, key));
            return;
        }
        if (!copy(data, "HF_TOKEN", settings, "HF_TOKEN")) {
            copy(data, ".dockerconfigjson", settings, ".dockerconfigjson");
        }
    }

    private static boolean copy(Map<String, String> from, String key, Map<String, String> to, String name) {
        String value = from.get(key);
        if (value == null) {
            return false;
        }
        to.put(name, value);
        return true;
    }

    private static boolean hasS3Annotation(Map<String, String> annotations) {
        return annotations.keySet().stream().anyMatch(key -> key.startsWith(GROUP + "s3-"));
    }

    /** The annotation overrides the secret's data, which overrides the configuration. */
    private static void s3(
            Map<String, String> annotations, Map<String, String> data, Names names, Map<String, String> settings) {
        String endpoint = first(annotations, data, names, "s3-endpoint", "S3_ENDPOINT");
        String https = first(annotations, data, names, "s3-usehttps", "S3_USE_HTTPS");
        if (https != null) {
            settings.put("S3_USE_HTTPS", https);
        }
        if (endpoint != null) {
            boolean plain = https != null
                    && (https.equals("0") || https.toLowerCase(Locale.ROOT).equals("false"));
            settings.put("S3_ENDPOINT", endpoint);
            settings.put(
                    "AWS_ENDPOINT_URL",
                    endpoint.contains("://") ? endpoint : (plain ? "http://" : "https://") + endpoint);
        }
        Map<String, String> others = Map.of(
                "s3-verifyssl", "S3_VERIFY_SSL",
                "s3-region", "AWS_DEFAULT_REGION",
                "s3-useanoncredential", "awsAnonymousCredential",
                "s3-usevirtualbucket", "S3_USER_VIRTUAL_BUCKET",
                "s3-useaccelerate", "S3_USE_ACCELERATE",
                "s3-cabundle", "AWS_CA_BUNDLE",
                "s3-cabundle-configmap", "AWS_CA_BUNDLE_CONFIGMAP");
        others.forEach((annotation, name) -> {
            String value = first(annotations, data, names, annotation, name);
            if (value != null) {
                settings.put(name, value);
            }
        });
    }

    private static @Nullable String first(
            Map<String, String> annotations, Map<String, String> data, Names names, String annotation, String name) {
        String value = annotations.get(GROUP + annotation);
        if (value == null) {
            value = data.get(name);
        }
        return value == null ? names.s3().get(annotation) : value;
    }

    /**
     * Resolves the {@code storage} of a component with its entry in the secret {@code storage-config}.
     *
     * @param secret the secret, or null if it does not exist
     * @param key the entry's name, or null for {@code default_{type}} if a parameter gives the type, else
     *     {@code default}
     * @param path {@code storage.path}, or a URI ({@code <scheme-placeholder>://path} stands for a path), or null
     * @param parameters override fields of the entry ({@code type}, {@code bucket} and so on)
     * @throws ServingException INVALID_ARGUMENT naming what is missing
     */
    public static Location storageSpec(
            @Nullable Secret secret, @Nullable String key, @Nullable String path, Map<String, String> parameters) {
        String name = secret == null ? "storage-config" : secret.name();
        String type = parameters.getOrDefault("type", "");
        String entry = key != null && !key.isEmpty() ? key : type.isEmpty() ? "default" : "default_" + type;
        String text = secret == null ? null : secret.data().get(entry);
        if (text == null && key != null && !key.isEmpty()) {
            throw ServingException.invalidArgument(
                    "specified storage key " + key + " not found in storage secret " + name,
                    secret == null
                            ? "create the secret"
                            : "its keys are " + new TreeSet<>(secret.data().keySet()));
        }
        Map<String, String> fields = new HashMap<>();
        if (text != null) {
            try {
                fields.putAll(StorageJson.fields(text, "entry"));
            } catch (ServingException e) {
                throw ServingException.invalidArgument(
                        "invalid json encountered in key " + entry + " of storage secret " + name,
                        "an entry is a JSON object of strings");
            }
        }
        fields.putAll(parameters);
        type = fields.getOrDefault("type", "");
        if (type.isEmpty()) {
            throw ServingException.invalidArgument(
                    "unable to determine storage type",
                    "give storage.parameters.type, or an entry '" + entry + "' with a type in the secret " + name);
        }
        if (!TYPES.contains(type)) {
            throw ServingException.invalidArgument("storage type must be one of [" + String.join(", ", TYPES)
                    + "]. storage type [" + type + "] is not supported");
        }
        String below = path == null ? "" : path;
        if (below.startsWith(PLACEHOLDER)) {
            below = below.substring(PLACEHOLDER.length());
        }
        String uri = below;
        if (!below.contains("://")) {
            String bucket = fields.getOrDefault("bucket", "");
            if (type.equals("s3") && bucket.isEmpty()) {
                throw ServingException.invalidArgument(
                        "format [s3] requires a bucket but one wasn't found in storage data or parameters",
                        "give storage.parameters.bucket");
            }
            String trimmed = below.replaceAll("^/+", "");
            uri = type.equals("s3") ? "s3://" + bucket + "/" + trimmed : type + "://" + trimmed;
        }
        Set<String> unused = new TreeSet<>(fields.keySet());
        unused.removeAll(Set.of("type", "bucket"));
        unused.removeAll(type.equals("s3") ? S3_ENTRY.keySet() : HDFS_KEYS);
        if (!unused.isEmpty()) {
            LOG.warn("{} of the storage entry {} have no effect on {}", unused, entry, StorageUri.shown(uri));
        }
        return new Location(uri, entrySettings(type, fields));
    }

    /**
     * Returns the settings for writing objects to a URI, for {@link Storage#bucket}.
     *
     * @param uri {@code s3://…}, {@code gs://…}, {@code abfs://…} or {@code abfss://…}
     * @param entry the JSON text of an entry of the secret {@code storage-config}, or null. With an entry,
     *     {@code secrets} are ignored
     * @param secrets of a service account, in its order
     * @param accountAnnotations annotations of the service account
     * @param parameters override fields of the entry: {@code region}, {@code endpoint_url} and so on
     * @throws ServingException INVALID_ARGUMENT naming the parameter or the entry that cannot be used
     */
    public static Map<String, String> writing(
            String uri,
            @Nullable String entry,
            List<Secret> secrets,
            Map<String, String> accountAnnotations,
            Map<String, String> parameters,
            Names names) {
        checkWriting(uri, parameters);
        Map<String, String> settings =
                new HashMap<>(entry == null ? settings(secrets, accountAnnotations, names) : Map.of());
        Map<String, String> fields = new HashMap<>();
        if (entry != null) {
            try {
                fields.putAll(StorageJson.fields(entry, "entry"));
            } catch (ServingException e) {
                throw ServingException.invalidArgument(
                        "the logger's key names an entry that is not a JSON object",
                        "an entry is a JSON object of strings");
            }
        }
        fields.putAll(parameters);
        if (uri.startsWith("s3:")) {
            settings.putAll(entrySettings("s3", fields));
        } else if (uri.startsWith("gs:")) {
            String account = fields.get("base64_service_account");
            if (account != null) {
                settings.put("GOOGLE_APPLICATION_CREDENTIALS", decoded("base64_service_account", account));
            }
        } else {
            fields.forEach((field, value) -> {
                if (field.startsWith("AZ_") || field.startsWith("AZURE_")) {
                    settings.put(field, value);
                }
            });
        }
        return settings;
    }

    /**
     * Rejects parameters that {@link #writing} does not use.
     *
     * @throws ServingException INVALID_ARGUMENT that names the parameter
     */
    public static void checkWriting(String uri, Map<String, String> parameters) {
        List<String> types = uri.startsWith("s3:")
                ? List.of("s3")
                : uri.startsWith("gs:") ? List.of("gs", "gcs") : List.of("azure", "abfs", "abfss");
        Set<String> known = new TreeSet<>(Set.of("type", "bucket"));
        if (uri.startsWith("s3:")) {
            known.addAll(S3_ENTRY.keySet());
        }
        parameters.forEach((name, value) -> {
            if (!known.contains(name)) {
                throw ServingException.invalidArgument(
                        "the parameter '" + name + "' is unknown for " + StorageUri.shown(uri), "known are " + known);
            }
            if (name.equals("type") && !types.contains(value)) {
                throw ServingException.invalidArgument(
                        "the parameter type is '" + value + "', but the store is " + StorageUri.shown(uri),
                        "leave it out: the URL determines the store");
            }
            int start = uri.indexOf("://") + 3;
            int end = uri.indexOf('/', start);
            String place = uri.substring(start, end < 0 ? uri.length() : end);
            int at = place.indexOf('@');
            if (name.equals("bucket") && !value.equals(at < 0 ? place : place.substring(0, at))) {
                throw ServingException.invalidArgument(
                        "the parameter bucket is '" + value + "', but the store is " + StorageUri.shown(uri),
                        "leave it out: the URL names the bucket");
            }
        });
    }

    private static Map<String, String> entrySettings(String type, Map<String, String> fields) {
        Map<String, String> settings = new HashMap<>();
        if (type.equals("s3")) {
            fields.forEach((field, value) -> {
                String name = S3_ENTRY.get(field);
                if (name != null && !value.isEmpty()) {
                    settings.put(name, value);
                }
            });
            return settings;
        }
        fields.forEach((field, value) -> {
            if (HDFS_KEYS.contains(field) && !value.isEmpty()) {
                settings.put(field, FILES.contains(field) ? decoded(field, value) : value);
            }
        });
        return settings;
    }

    /** Files are encoded in base64 inside of the JSON. */
    private static String decoded(String field, String value) {
        if (value.contains("-----BEGIN")) {
            return value;
        }
        try {
            return new String(Base64.getMimeDecoder().decode(value), StandardCharsets.ISO_8859_1);
        } catch (IllegalArgumentException e) {
            throw ServingException.invalidArgument("the field " + field + " of the storage secret is not base64");
        }
    }
}
