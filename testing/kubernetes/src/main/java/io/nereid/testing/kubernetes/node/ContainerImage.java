// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.kubernetes.node;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * What stands for a container image on a node without containers: a program of this machine. Immutable.
 *
 * <pre>{@code
 * new ContainerImage(List.of("/opt/nereid/bin/nereid"), Map.of("JAVA_HOME", home), Map.of(distribution, "/opt/nereid"), 65532)
 * }</pre>
 *
 * @param entrypoint the program and its first arguments; a container's {@code command} takes its place
 * @param environment variables that the container sees, below its own
 * @param mounts files and folders of this machine, by the path that they have in the container
 * @param user the user id that the program has unless the pod names one
 */
public record ContainerImage(
        List<String> entrypoint, Map<String, String> environment, Map<Path, String> mounts, long user) {}
