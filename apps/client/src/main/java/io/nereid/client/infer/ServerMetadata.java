// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.infer;

import java.util.List;

/**
 * What a server says of itself. Immutable.
 *
 * @param name its name
 * @param version its version
 * @param extensions the names of the protocol extensions that it has
 */
public record ServerMetadata(String name, String version, List<String> extensions) {
    public ServerMetadata {
        extensions = List.copyOf(extensions);
    }
}
