// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.pod;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.kubernetes.cluster.Trees;
import java.util.List;

/**
 * Models in images, whose files lie under {@code /models} of the image: as a volume of the container runtime, or as a
 * container beside the server's, whose files it sees through the processes that the pod shares. Stateless.
 */
final class ImageMounts {
    private static final String IMAGE = "modelcar";

    private ImageMounts() {}

    static void asVolume(ObjectNode pod, ObjectNode container, String image, String path) {
        String name = StorageInjection.volumeName(path);
        name = name.isEmpty() ? "oci-model" : name;
        ObjectNode taken = Trees.find(container.path("volumeMounts"), "mountPath", path);
        if (taken != null && !taken.path("name").asText().equals(name)) {
            throw ServingException.invalidArgument("mountPath \"" + path + "\" is already used by the volume \""
                    + taken.path("name").asText() + "\"; mount one of them elsewhere");
        }
        ObjectNode volume = Trees.object().put("name", name);
        volume.putObject("image").put("reference", image).put("pullPolicy", "IfNotPresent");
        Trees.addNamed(pod, "volumes", volume);
        if (taken == null) {
            Trees.list(container, "volumeMounts")
                    .addObject()
                    .put("name", name)
                    .put("mountPath", path)
                    .put("subPath", "models")
                    .put("readOnly", true);
        }
    }

    static void asContainer(
            ObjectNode pod, ObjectNode container, String image, String path, int index, JsonNode settings) {
        String suffix = index == 0 ? "" : "-" + index;
        String volume = "kserve-provision-location" + suffix;
        int slash = path.lastIndexOf('/');
        String parent = slash <= 0 ? "/" : path.substring(0, slash);
        Trees.setEnv(container, "MODEL_INIT_MODE", "async");
        ObjectNode shared = Trees.object().put("name", volume);
        shared.putObject("emptyDir");
        Trees.addNamed(pod, "volumes", shared);
        mount(container, volume, parent);
        JsonNode user = settings.path("uidModelcar");
        if (user.isIntegralNumber()) {
            Trees.object(container, "securityContext").put("runAsUser", user.asLong());
        }
        if (Trees.named(pod.path("containers"), IMAGE + suffix) == null) {
            ObjectNode beside = container(IMAGE + suffix, image, settings);
            Trees.texts(beside, "args", List.of("sh", "-c", link(path, parent)));
            mount(beside, volume, parent);
            if (user.isIntegralNumber()) {
                Trees.object(beside, "securityContext").put("runAsUser", user.asLong());
            }
            Trees.list(pod, "containers").add(beside);
            ObjectNode check = container(IMAGE + "-init" + suffix, image, settings);
            Trees.texts(
                    check,
                    "args",
                    List.of(
                            "sh",
                            "-c",
                            "echo 'Pre-fetching modelcar " + image
                                    + ": ' && [ -d /models ] && [ \"$$(ls -A /models)\" ]"
                                    + " && echo 'OK ... Prefetched and valid (/models exists)' || (echo 'NOK ..."
                                    + " Prefetched but modelcar is invalid (/models does not exist or is empty)' &&"
                                    + " exit 1)"));
            Trees.list(pod, "initContainers").add(check);
        }
        pod.put("shareProcessNamespace", true);
    }

    private static String link(String path, String parent) {
        String link = "ln -sf /proc/$$$$/root/models " + quoted(path) + " && sleep infinity";
        return path.equals(PodNames.MODELS) ? link : "mkdir -p " + quoted(parent) + " && " + link;
    }

    private static String quoted(String path) {
        return path.matches("[A-Za-z0-9/._-]+") ? path : "'" + path.replace("'", "'\\''") + "'";
    }

    private static ObjectNode container(String name, String image, JsonNode settings) {
        ObjectNode container = Trees.object().put("name", name).put("image", image);
        String cpu = settings.path("cpuModelcar").asText("10m");
        String memory = settings.path("memoryModelcar").asText("15Mi");
        ObjectNode resources = container.putObject("resources");
        for (String part : List.of("limits", "requests")) {
            resources.putObject(part).put("cpu", cpu).put("memory", memory);
        }
        container.put("terminationMessagePolicy", "FallbackToLogsOnError");
        return container;
    }

    private static void mount(ObjectNode container, String volume, String path) {
        if (Trees.named(container.path("volumeMounts"), volume) == null) {
            Trees.list(container, "volumeMounts")
                    .addObject()
                    .put("name", volume)
                    .put("mountPath", path);
        }
    }
}
