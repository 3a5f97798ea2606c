// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.nodeagent;

import java.nio.file.Path;
import java.time.Duration;

/**
 * The options of an agent. Immutable.
 *
 * @param node the name of its node
 * @param group the LocalModelNodeGroup whose models it keeps
 * @param directory the volume of the group
 * @param credentials the namespace of the secrets for LocalModelCaches
 * @param retry after which time a failed download is tried again
 * @param healthPort the port of probes; 0 for any free one
 */
public record NodeAgentOptions(
        String node, String group, Path directory, String credentials, Duration retry, int healthPort) {}
