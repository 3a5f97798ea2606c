// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.pod;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ClusterStorageContainer;
import io.nereid.control.api.InferenceService.StorageUri;
import io.nereid.control.core.component.StrategicMerge;
import io.nereid.control.kubernetes.cluster.CaBundle;
import io.nereid.control.kubernetes.cluster.ClusterSettings;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.kubernetes.localmodel.CachedModels;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Gives pods the files of their models: downloads, mounts of claims, images. Confined to one planning. */
final class StorageInjection {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String VOLUME = "kserve-provision-location";
    private static final String CLAIM_VOLUME = "kserve-pvc-source";
    private static final String BUNDLE = "cabundle-cert";

    private final ClusterSettings settings;
    private final StorageCredentials credentials;
    private final List<ClusterStorageContainer> storageContainers;
    private final String namespace;

    StorageInjection(
            ClusterSettings settings,
            StorageCredentials credentials,
            List<ClusterStorageContainer> storageContainers,
            String namespace) {
        this.settings = settings;
        this.credentials = credentials;
        this.storageContainers = storageContainers.stream()
                .sorted(Comparator.comparing(one -> one.metadata().name()))
                .toList();
        this.namespace = namespace;
    }

    /** Adds the download of the one URI that the annotations name, or the mount of the claim that has it. */
    void single(ObjectNode pod, Map<String, String> annotations) {
        String uri = annotations.get(PodNames.SOURCE_URI);
        if (uri == null || annotations.containsKey(PodNames.AGENT) || isImage(uri) || hasInitializer(pod)) {
            return;
        }
        String cached = CachedModels.claimUri(uri, annotations);
        uri = cached == null ? uri : cached;
        boolean readOnly = isReadOnly(annotations);
        ObjectNode main = main(pod);
        if (uri.startsWith("pvc://")) {
            Claim claim = Claim.of(uri);
            for (ObjectNode container : readers(pod, main)) {
                mount(container, CLAIM_VOLUME, PodNames.MODELS, claim.path(), readOnly);
            }
            claimVolume(pod, CLAIM_VOLUME, claim.name());
        } else {
            ObjectNode initializer = initializer(List.of(uri, PodNames.MODELS));
            for (ObjectNode container : readers(pod, main)) {
                mount(container, VOLUME, PodNames.MODELS, "", readOnly);
            }
            mount(initializer, VOLUME, PodNames.MODELS, "", false);
            emptyVolume(pod, VOLUME);
            String name = annotations.getOrDefault(PodNames.STORAGE_CONTAINER, "");
            Trees.list(pod, "initContainers").add(complete(initializer, pod, annotations, storageContainer(uri, name)));
        }
        ObjectNode env = Trees.named(main.path("env"), "STORAGE_URI");
        if (env != null && !env.path("value").asText("").isEmpty()) {
            env.put("value", PodNames.MODELS);
        }
    }

    /** Adds the downloads of several URIs, and the mounts of the claims and images among them. */
    void several(ObjectNode pod, List<StorageUri> uris, String storageContainer, Map<String, String> annotations) {
        if (uris.isEmpty() || annotations.containsKey(PodNames.AGENT) || hasInitializer(pod)) {
            return;
        }
        boolean readOnly = isReadOnly(annotations);
        ObjectNode main = main(pod);
        List<String> args = new ArrayList<>();
        List<String> paths = new ArrayList<>();
        int images = 0;
        for (StorageUri one : uris) {
            if (isImage(one.uri())) {
                image(pod, one.uri(), one.mountPath(), images++);
            } else if (one.uri().startsWith("pvc://")) {
                String volume = volumeName(one.mountPath());
                Claim claim = Claim.of(one.uri());
                for (ObjectNode container : readers(pod, main)) {
                    mount(container, volume, one.mountPath(), claim.path(), readOnly);
                }
                claimVolume(pod, volume, claim.name());
            } else {
                args.add(one.uri());
                args.add(one.mountPath());
                paths.add(one.mountPath());
            }
        }
        if (args.isEmpty()) {
            return;
        }
        ClusterStorageContainer by = storageContainer(args.get(0), storageContainer);
        if (by != null && !by.supportsMultiModelDownload()) {
            throw ServingException.invalidArgument(
                    "the ClusterStorageContainer " + by.metadata().name()
                            + " does not support several storageUris; name one that does, or set its"
                            + " spec.supportsMultiModelDownload");
        }
        String parent = commonParent(paths);
        String volume = volumeName(parent);
        ObjectNode initializer = initializer(args);
        for (ObjectNode container : readers(pod, main)) {
            mount(container, volume, parent, "", readOnly);
        }
        mount(initializer, volume, parent, "", false);
        emptyVolume(pod, volume);
        Trees.list(pod, "initContainers").add(complete(initializer, pod, annotations, by));
    }

    /** Mounts the model's image, when the annotations name one. */
    void image(ObjectNode pod, Map<String, String> annotations) {
        String uri = annotations.get(PodNames.SOURCE_URI);
        if (uri != null && isImage(uri)) {
            image(pod, uri, PodNames.MODELS, 0);
        }
    }

    private void image(ObjectNode pod, String uri, String path, int index) {
        String mode = uri.startsWith("oci+") ? uri.substring(4, uri.indexOf("://")) : settings.imageMode();
        if (mode.isEmpty()) {
            throw ServingException.invalidArgument(uri + ": models in images are switched off; set"
                    + " storageInitializer.ociModelMode of inferenceservice-config to modelcar or native");
        }
        String image = uri.substring(uri.indexOf("://") + 3);
        for (ObjectNode container : readers(pod, main(pod))) {
            if (mode.equals("native")) {
                ImageMounts.asVolume(pod, container, image, path);
            } else {
                ImageMounts.asContainer(pod, container, image, path, index, settings.section("storageInitializer"));
            }
        }
    }

    private ObjectNode initializer(List<String> args) {
        ObjectNode container = Trees.object();
        container.put("name", PodNames.INITIALIZER);
        container.put(
                "image", settings.section("storageInitializer").path("image").asText());
        Trees.texts(container, "args", args);
        container.put("terminationMessagePolicy", "FallbackToLogsOnError");
        container.set("resources", settings.resources("storageInitializer"));
        return container;
    }

    private ObjectNode complete(
            ObjectNode initializer,
            ObjectNode pod,
            Map<String, String> annotations,
            @Nullable ClusterStorageContainer by) {
        if ("true".equals(annotations.get(PodNames.STORAGE_SPEC))) {
            credentials.ofStorage(
                    annotations.getOrDefault(PodNames.STORAGE_SPEC_KEY, ""),
                    parameters(annotations.get(PodNames.STORAGE_SPEC_PARAM)),
                    annotations,
                    initializer);
        } else {
            credentials.ofAccount(StorageCredentials.account(pod), annotations, initializer, pod);
        }
        ObjectNode merged = by == null
                ? initializer
                : StrategicMerge.patch(initializer, by.container().tree());
        bundle(merged, pod);
        Trees.env(merged, "HF_HUB_ENABLE_HF_TRANSFER", "1");
        Trees.env(merged, "HF_XET_HIGH_PERFORMANCE", "1");
        Trees.env(merged, "HF_XET_NUM_CONCURRENT_RANGE_GETS", "8");
        if ("true".equals(annotations.get(PodNames.CONFIDENTIAL))) {
            Trees.setEnv(merged, "CONFIDENTIAL_ENABLED", "true");
            String resource = annotations.get(PodNames.CONFIDENTIAL_RESOURCE);
            if (resource != null) {
                Trees.setEnv(merged, "CONFIDENTIAL_RESOURCE_ID", resource);
            }
        }
        return merged;
    }

    /** Mounts the certificates of the settings, or of the variable that a secret of S3 sets. */
    private void bundle(ObjectNode initializer, ObjectNode pod) {
        JsonNode section = settings.section("storageInitializer");
        String map = section.path("caBundleConfigMapName").asText("");
        if (!map.isEmpty() && !namespace.equals("kserve")) {
            map = CaBundle.NAME;
        }
        String path = section.path("caBundleVolumeMountPath").asText("");
        path = path.isEmpty() ? "/etc/ssl/custom-certs" : path;
        ObjectNode named = Trees.named(initializer.path("env"), "AWS_CA_BUNDLE_CONFIGMAP");
        if (named != null) {
            map = named.path("value").asText();
        }
        if (map.isEmpty()) {
            return;
        }
        ObjectNode file = Trees.named(initializer.path("env"), "AWS_CA_BUNDLE");
        if (file != null) {
            String text = file.path("value").asText();
            path = text.substring(0, Math.max(0, text.lastIndexOf('/')));
        }
        Trees.env(initializer, "CA_BUNDLE_CONFIGMAP_NAME", map);
        Trees.env(initializer, "CA_BUNDLE_VOLUME_MOUNT_POINT", path);
        ObjectNode volume = Trees.object().put("name", BUNDLE);
        volume.putObject("configMap").put("name", map);
        Trees.addNamed(pod, "volumes", volume);
        mount(initializer, BUNDLE, path, "", true);
    }

    private @Nullable ClusterStorageContainer storageContainer(String uri, String name) {
        if (name.isEmpty()) {
            return storageContainers.stream()
                    .filter(one -> one.workloadType().equals("initContainer") && one.supports(uri))
                    .findFirst()
                    .orElse(null);
        }
        for (ClusterStorageContainer one : storageContainers) {
            if (one.metadata().name().equals(name)) {
                if (!one.supports(uri)) {
                    throw ServingException.invalidArgument("ClusterStorageContainer \"" + name
                            + "\" does not support storageUri \"" + uri + "\", or is disabled; name another one");
                }
                return one;
            }
        }
        throw ServingException.of(
                ErrorCode.NOT_FOUND,
                "ClusterStorageContainer \"" + name + "\" not found; apply it, or leave storageContainerName out");
    }

    private static Map<String, String> parameters(@Nullable String json) {
        try {
            return json == null ? Map.of() : Trees.map(JSON.readTree(json));
        } catch (JsonProcessingException e) {
            throw ServingException.invalidArgument("storage.parameters: expected an object of texts, found " + json);
        }
    }

    private static boolean isImage(String uri) {
        return uri.startsWith("oci://") || uri.startsWith("oci+");
    }

    private static boolean hasInitializer(ObjectNode pod) {
        return Trees.named(pod.path("initContainers"), PodNames.INITIALIZER) != null;
    }

    private static boolean isReadOnly(Map<String, String> annotations) {
        return !"false".equals(annotations.get("storage.kserve.io/readonly"));
    }

    private static ObjectNode main(ObjectNode pod) {
        ObjectNode main = Trees.named(pod.path("containers"), PodNames.MAIN);
        main = main == null ? Trees.named(pod.path("containers"), PodNames.WORKER) : main;
        if (main == null) {
            throw ServingException.invalidArgument(
                    "no container is named " + PodNames.MAIN + ", so that none gets the model's files; name one so");
        }
        return main;
    }

    /** The containers that see the files: the model's, and the transformer beside it. */
    private static List<ObjectNode> readers(ObjectNode pod, ObjectNode main) {
        ObjectNode transformer = Trees.named(pod.path("containers"), PodNames.TRANSFORMER);
        return transformer == null ? List.of(main) : List.of(main, transformer);
    }

    private static void mount(ObjectNode container, String volume, String path, String subPath, boolean readOnly) {
        if (Trees.named(container.path("volumeMounts"), volume) != null) {
            return;
        }
        ObjectNode mount = Trees.list(container, "volumeMounts").addObject();
        mount.put("name", volume).put("mountPath", path);
        if (!subPath.isEmpty()) {
            mount.put("subPath", subPath);
        }
        if (readOnly) {
            mount.put("readOnly", true);
        }
    }

    private static void claimVolume(ObjectNode pod, String volumeName, String claimed) {
        ObjectNode volume = Trees.object().put("name", volumeName);
        volume.putObject("persistentVolumeClaim").put("claimName", claimed);
        Trees.addNamed(pod, "volumes", volume);
    }

    private static void emptyVolume(ObjectNode pod, String name) {
        ObjectNode volume = Trees.object().put("name", name);
        volume.putObject("emptyDir");
        Trees.addNamed(pod, "volumes", volume);
    }

    static String volumeName(String path) {
        String name = path;
        while (name.startsWith("/")) {
            name = name.substring(1);
        }
        while (name.endsWith("/")) {
            name = name.substring(0, name.length() - 1);
        }
        return name.replace('/', '-');
    }

    /** The directory that all paths are in; the path itself when it is the only one. */
    static String commonParent(List<String> paths) {
        if (paths.size() == 1) {
            return paths.get(0);
        }
        List<String> common = null;
        for (String path : paths) {
            List<String> parts = new ArrayList<>();
            for (String part : path.split("/", -1)) {
                if (!part.isEmpty()) {
                    parts.add(part);
                }
            }
            if (common == null) {
                common = parts;
                continue;
            }
            int same = 0;
            while (same < Math.min(common.size(), parts.size())
                    && common.get(same).equals(parts.get(same))) {
                same++;
            }
            common = common.subList(0, same);
        }
        return "/" + String.join("/", common == null ? List.of() : common);
    }

    /** A claim and the path in it, of {@code pvc://NAME/PATH}. */
    private record Claim(String name, String path) {
        private static Claim of(String uri) {
            String rest = uri.substring("pvc://".length());
            int slash = rest.indexOf('/');
            return slash < 0 ? new Claim(rest, "") : new Claim(rest.substring(0, slash), rest.substring(slash + 1));
        }
    }
}
