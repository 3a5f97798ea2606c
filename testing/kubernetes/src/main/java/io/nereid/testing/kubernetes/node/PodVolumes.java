// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.kubernetes.node;

import io.fabric8.kubernetes.api.model.Container;
import io.fabric8.kubernetes.api.model.KeyToPath;
import io.fabric8.kubernetes.api.model.PersistentVolume;
import io.fabric8.kubernetes.api.model.PersistentVolumeClaim;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.ServiceAccountTokenProjection;
import io.fabric8.kubernetes.api.model.Volume;
import io.fabric8.kubernetes.api.model.VolumeMount;
import io.fabric8.kubernetes.api.model.VolumeProjection;
import io.fabric8.kubernetes.api.model.authentication.TokenRequest;
import io.fabric8.kubernetes.api.model.authentication.TokenRequestBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The volumes of one pod as folders of the machine: emptyDir, configMap, secret, projected, downwardAPI, hostPath and
 * persistentVolumeClaim (of a hostPath volume). Their texts are those of the pod's start. Not thread-safe.
 */
final class PodVolumes {
    private final KubernetesClient client;
    private final Pod pod;
    private final PodValues values;
    private final Path folder;
    private final Map<String, Path> places = new HashMap<>();

    /** @param folder a folder of the pod's own, which exists */
    PodVolumes(KubernetesClient client, Pod pod, PodValues values, Path folder) {
        this.client = client;
        this.pod = pod;
        this.values = values;
        this.folder = folder;
    }

    /** Makes the folders of all volumes that are not there; fails while something that they name does not exist. */
    void prepare() throws IOException {
        for (Volume volume : pod.getSpec().getVolumes()) {
            if (!places.containsKey(volume.getName())) {
                places.put(volume.getName(), place(volume));
            }
        }
    }

    private Path place(Volume volume) throws IOException {
        if (volume.getHostPath() != null) {
            return Path.of(volume.getHostPath().getPath());
        }
        if (volume.getPersistentVolumeClaim() != null) {
            return claimed(volume.getPersistentVolumeClaim().getClaimName());
        }
        Path at = folder.resolve(volume.getName());
        Files.createDirectories(at);
        if (volume.getEmptyDir() != null) {
            Files.setPosixFilePermissions(at, PosixFilePermissions.fromString("rwxrwxrwx"));
        } else if (volume.getConfigMap() != null) {
            var source = volume.getConfigMap();
            write(at, values.configMap(source.getName(), source.getOptional()), source.getItems(), source.getName());
        } else if (volume.getSecret() != null) {
            var source = volume.getSecret();
            write(
                    at,
                    values.secret(source.getSecretName(), source.getOptional()),
                    source.getItems(),
                    source.getSecretName());
        } else if (volume.getDownwardAPI() != null) {
            for (var file : volume.getDownwardAPI().getItems()) {
                write(
                        at.resolve(file.getPath()),
                        values.field(file.getFieldRef().getFieldPath()));
            }
        } else if (volume.getProjected() != null) {
            for (VolumeProjection source : volume.getProjected().getSources()) {
                project(at, source);
            }
        } else {
            throw new IOException("volume " + volume.getName() + ": the node has no volumes of this type");
        }
        return at;
    }

    private Path claimed(String name) throws IOException {
        PersistentVolumeClaim claim = client.persistentVolumeClaims()
                .inNamespace(pod.getMetadata().getNamespace())
                .withName(name)
                .get();
        if (claim == null) {
            throw new IOException("persistentvolumeclaim \"" + name + "\" not found");
        }
        PersistentVolume volume = claim.getSpec().getVolumeName() == null
                ? null
                : client.persistentVolumes()
                        .withName(claim.getSpec().getVolumeName())
                        .get();
        if (volume == null || volume.getSpec().getHostPath() == null) {
            throw new IOException("persistentvolumeclaim \"" + name + "\" is not bound to a hostPath volume");
        }
        return Path.of(volume.getSpec().getHostPath().getPath());
    }

    private void project(Path at, VolumeProjection source) throws IOException {
        if (source.getConfigMap() != null) {
            var map = source.getConfigMap();
            write(at, values.configMap(map.getName(), map.getOptional()), map.getItems(), map.getName());
        } else if (source.getSecret() != null) {
            var secret = source.getSecret();
            write(at, values.secret(secret.getName(), secret.getOptional()), secret.getItems(), secret.getName());
        } else if (source.getDownwardAPI() != null) {
            for (var file : source.getDownwardAPI().getItems()) {
                write(
                        at.resolve(file.getPath()),
                        values.field(file.getFieldRef().getFieldPath()));
            }
        } else {
            write(at.resolve(source.getServiceAccountToken().getPath()), token(source.getServiceAccountToken()));
        }
    }

    private String token(ServiceAccountTokenProjection projection) {
        TokenRequest request = new TokenRequestBuilder()
                .withNewSpec()
                .withAudiences(projection.getAudience() == null ? List.of() : List.of(projection.getAudience()))
                .withExpirationSeconds(projection.getExpirationSeconds())
                .withNewBoundObjectRef()
                .withApiVersion("v1")
                .withKind("Pod")
                .withName(pod.getMetadata().getName())
                .withUid(pod.getMetadata().getUid())
                .endBoundObjectRef()
                .endSpec()
                .build();
        return client.serviceAccounts()
                .inNamespace(pod.getMetadata().getNamespace())
                .withName(pod.getSpec().getServiceAccountName())
                .tokenRequest(request)
                .getStatus()
                .getToken();
    }

    private static void write(Path at, Map<String, String> texts, @Nullable List<KeyToPath> items, String name)
            throws IOException {
        if (items == null || items.isEmpty()) {
            for (Map.Entry<String, String> text : texts.entrySet()) {
                write(at.resolve(text.getKey()), text.getValue());
            }
            return;
        }
        for (KeyToPath item : items) {
            String text = texts.get(item.getKey());
            if (text == null) {
                throw new IOException("references non-existent key " + item.getKey() + " of " + name);
            }
            write(at.resolve(item.getPath()), text);
        }
    }

    private static void write(Path file, String text) throws IOException {
        Files.createDirectories(file.getParent());
        Files.writeString(file, text);
    }

    /** The mounts of a container; the volumes are prepared. */
    List<ContainerScript.Mount> mounts(Container container) throws IOException {
        List<ContainerScript.Mount> mounts = new ArrayList<>();
        for (VolumeMount mount : container.getVolumeMounts()) {
            Path from = places.get(mount.getName());
            if (from == null) {
                throw new IOException("there is no volume " + mount.getName());
            }
            if (mount.getSubPath() != null) {
                from = from.resolve(mount.getSubPath());
                if (!Files.exists(from)) {
                    Files.createDirectories(from);
                }
            }
            mounts.add(new ContainerScript.Mount(from, mount.getMountPath(), Boolean.TRUE.equals(mount.getReadOnly())));
        }
        return mounts;
    }
}
