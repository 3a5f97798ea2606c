// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.fetch;

import io.nereid.base.ServingException;
import io.nereid.storage.request.StorageCredentials;
import io.nereid.storage.request.StorageJson;
import io.nereid.storage.spi.StorageUri;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The settings of stores from what a pod's init container is given: variables that KServe makes from Secrets and
 * ServiceAccounts, mounted secrets, and the {@code storage} of a component. Immutable; may hold secrets.
 *
 * <p>Source of the names: the credential builders and the storage initializer of KServe 0.20.
 */
final class FetchEnvironment {
    /** What the launcher passes on: the environment in base64, since shells drop variables such as example.com-headers. */
    static final String LAUNCHER = "NEREID_FETCH_ENVIRONMENT";

    private static final String STORAGE_CONFIG = "STORAGE_CONFIG";
    private static final String STORAGE_OVERRIDE_CONFIG = "STORAGE_OVERRIDE_CONFIG";
    private static final String HDFS_SECRETS = "/var/secrets/kserve-hdfscreds";
    private static final String PLACEHOLDER = "<scheme-placeholder>://";
    private static final List<String> HDFS_TEXTS = List.of(
            "HDFS_NAMENODE",
            "HDFS_ROOTPATH",
            "USER_PROXY",
            "HEADERS",
            "N_THREADS",
            "TLS_SKIP_VERIFY",
            "KERBEROS_PRINCIPAL");
    private static final List<String> HDFS_FILES = List.of("TLS_CERT", "TLS_KEY", "TLS_CA", "KERBEROS_KEYTAB");
    /** Types of the entries of storage-config by scheme. */
    private static final Set<String> TYPES = Set.of("s3", "hdfs", "webhdfs");

    private final Map<String, String> variables;

    private FetchEnvironment(Map<String, String> variables) {
        this.variables = Map.copyOf(variables);
    }

    /** Reads the environment of a process. */
    static FetchEnvironment of(Map<String, String> environment) {
        Map<String, String> all = new HashMap<>(environment);
        String passed = all.remove(LAUNCHER);
        if (passed != null) {
            addMissing(passed, all);
        }
        String confidential = all.getOrDefault("CONFIDENTIAL_ENABLED", "");
        if (confidential.equalsIgnoreCase("true") || confidential.equals("1")) {
            throw ServingException.invalidArgument(
                    "CONFIDENTIAL_ENABLED is '" + confidential + "': encrypted models are not supported",
                    "remove confidential from the model, or let KServe's storage initializer fetch it");
        }
        addHdfs(all);
        String pullSecret = all.get("KSERVE_OCI_DOCKER_CONFIG");
        if (pullSecret != null && Files.isRegularFile(Path.of(pullSecret))) {
            // The mounted pull secret of the pod.
            all.putIfAbsent(".dockerconfigjson", pullSecret);
        }
        return new FetchEnvironment(all);
    }

    /** In a pod the ConfigMap with the authorities of S3 is mounted where that of the cluster is. */
    private static Map<String, String> withBundle(Map<String, String> settings) {
        String map = settings.get("AWS_CA_BUNDLE_CONFIGMAP");
        if (map == null || map.isEmpty() || !settings.containsKey("CA_BUNDLE_VOLUME_MOUNT_POINT")) {
            return settings;
        }
        Map<String, String> all = new HashMap<>(settings);
        all.remove("AWS_CA_BUNDLE_CONFIGMAP");
        all.putIfAbsent("CA_BUNDLE_CONFIGMAP_NAME", map);
        return all;
    }

    private static void addMissing(String base64, Map<String, String> to) {
        String text;
        try {
            text = new String(Base64.getMimeDecoder().decode(base64), StandardCharsets.UTF_8);
        } catch (IllegalArgumentException e) {
            throw ServingException.invalidArgument(LAUNCHER + " is not base64", "only the launcher sets it");
        }
        for (String variable : text.split("\0")) {
            int equals = variable.indexOf('=');
            if (equals > 0) {
                to.putIfAbsent(variable.substring(0, equals), variable.substring(equals + 1));
            }
        }
    }

    /** A secret for HDFS is mounted as files, one for each key. */
    private static void addHdfs(Map<String, String> to) {
        Path directory = Path.of(to.getOrDefault("HDFS_SECRET_DIR", HDFS_SECRETS));
        if (!Files.isDirectory(directory)) {
            return;
        }
        for (String name : HDFS_TEXTS) {
            Path file = directory.resolve(name);
            if (Files.isRegularFile(file)) {
                try {
                    to.put(name, Files.readString(file).strip());
                } catch (IOException e) {
                    throw ServingException.invalidArgument(
                            "the secret file " + file + " cannot be read: "
                                    + e.getClass().getSimpleName(),
                            "let the user of this process read the mounted secret");
                }
            }
        }
        for (String name : HDFS_FILES) {
            Path file = directory.resolve(name);
            if (Files.isRegularFile(file)) {
                to.put(name, file.toString());
            }
        }
    }

    /**
     * A source and the settings to fetch it with. Immutable.
     *
     * @param settings for {@link io.nereid.storage.request.StorageOptions#environment()}
     */
    record Located(String uri, Map<String, String> settings) {
        @Override
        public String toString() {
            return "Located[" + StorageUri.shown(uri) + "]";
        }
    }

    /**
     * The real URI of a source and its settings: an entry of the secret {@code storage-config}, if the component has
     * {@code storage}, overrides the variables.
     *
     * @throws ServingException INVALID_ARGUMENT for an entry that cannot be used
     */
    Located locate(String uri) {
        String config = variables.getOrDefault(STORAGE_CONFIG, "");
        String override = variables.getOrDefault(STORAGE_OVERRIDE_CONFIG, "");
        if (config.isBlank() && override.isBlank() && !uri.startsWith(PLACEHOLDER)) {
            return new Located(uri, withBundle(variables));
        }
        Map<String, String> fields = new HashMap<>();
        if (!config.isBlank()) {
            fields.putAll(StorageJson.fields(config, STORAGE_CONFIG));
        }
        if (!override.isBlank()) {
            fields.putAll(StorageJson.fields(override, STORAGE_OVERRIDE_CONFIG));
        }
        String scheme = StorageUri.scheme(uri);
        if (fields.getOrDefault("type", "").isEmpty() && TYPES.contains(scheme)) {
            fields.put("type", scheme);
        }
        StorageCredentials.Location location = StorageCredentials.storageSpec(null, null, uri, fields);
        Map<String, String> all = new HashMap<>(variables);
        all.putAll(location.credentials());
        return new Located(location.uri(), withBundle(all));
    }

    /** Whether this process runs in a pod. */
    boolean inPod() {
        return variables.containsKey("KUBERNETES_SERVICE_HOST");
    }

    /** The number of variables only, since values may be secrets. */
    @Override
    public String toString() {
        return "FetchEnvironment[" + variables.size() + "]";
    }
}
