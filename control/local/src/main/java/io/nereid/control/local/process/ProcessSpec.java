// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.process;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The specification of a process to start.
 *
 * @param container the container's name
 * @param command program and arguments
 * @param environment all environment variables
 * @param ports assigned ports by the number in the container's specification
 * @param httpPort the port for HTTP; 0 without one
 * @param grpcPort the port for gRPC; 0 without one
 * @param workingDirectory null for the default directory
 */
record ProcessSpec(
        String container,
        List<String> command,
        Map<String, String> environment,
        Map<Integer, Integer> ports,
        int httpPort,
        int grpcPort,
        @Nullable Path workingDirectory) {
    /** This specification with another value of a variable. */
    ProcessSpec with(String name, String value) {
        Map<String, String> all = new LinkedHashMap<>(environment);
        all.put(name, value);
        return new ProcessSpec(container, command, all, ports, httpPort, grpcPort, workingDirectory);
    }
}
