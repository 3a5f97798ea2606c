// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.pod;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Why a container does not run, in its own words. Immutable.
 *
 * @param message the message that it ended with, or why its image cannot be had; may be empty
 * @param exitCode its exit code; null when it never ran
 * @param time when it ended, as in the API of Kubernetes; empty when that is not known
 */
public record ContainerFailure(String message, @Nullable Integer exitCode, String time) {
    private static final List<String> IMAGES = List.of("ImagePullBackOff", "ErrImagePull", "InvalidImageName");

    /**
     * The failure of a container that ended with an error, is started again and again, or has no image.
     *
     * @param container an element of {@code containerStatuses} or {@code initContainerStatuses}
     * @return null when it has not failed
     */
    public static @Nullable ContainerFailure of(JsonNode container) {
        JsonNode state = container.path("state");
        JsonNode ended = state.path("terminated");
        JsonNode waiting = state.path("waiting");
        String reason = waiting.path("reason").asText("");
        if (reason.equals("CrashLoopBackOff")) {
            ended = container.path("lastState").path("terminated");
        } else if (IMAGES.contains(reason)) {
            return new ContainerFailure(reason + ": " + waiting.path("message").asText(""), null, "");
        } else if (!ended.path("reason").asText().equals("Error")) {
            return null;
        }
        return new ContainerFailure(
                ended.path("message").asText(""),
                ended.path("exitCode").asInt(),
                ended.path("finishedAt").asText(""));
    }
}
