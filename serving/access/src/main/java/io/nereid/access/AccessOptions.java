// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access;

import io.nereid.base.Clock;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * What an operator has configured of access. Immutable.
 *
 * @param keysFile the file of API keys; null for none
 * @param configFile {@code access.yaml}; null for none
 * @param openManagement whether everything is open to everyone
 * @param localHosts further names by which local clients call the server, in lower case; {@code *} for any
 * @param httpRestrictions tritonserver's {@code --http-restricted-api} specifications
 * @param grpcRestrictions tritonserver's {@code --grpc-restricted-protocol} specifications
 * @param token a token that gives every permission, made by the server itself; null for none
 * @param auditFile the file of the audit log; null for none
 * @param clock the server's clock
 */
public record AccessOptions(
        @Nullable Path keysFile,
        @Nullable Path configFile,
        boolean openManagement,
        Set<String> localHosts,
        List<String> httpRestrictions,
        List<String> grpcRestrictions,
        @Nullable String token,
        @Nullable Path auditFile,
        Clock clock) {
    /** Copies the collections. */
    public AccessOptions {
        localHosts = Set.copyOf(localHosts);
        httpRestrictions = List.copyOf(httpRestrictions);
        grpcRestrictions = List.copyOf(grpcRestrictions);
    }

    /** No credentials, no restrictions. */
    public static AccessOptions none(Clock clock) {
        return new AccessOptions(null, null, false, Set.of(), List.of(), List.of(), null, null, clock);
    }

    /** These options with a token that gives every permission. */
    public AccessOptions withToken(String text) {
        return new AccessOptions(
                keysFile,
                configFile,
                openManagement,
                localHosts,
                httpRestrictions,
                grpcRestrictions,
                text,
                auditFile,
                clock);
    }

    /** Whether callers are known by credentials. */
    public boolean hasCredentials() {
        return keysFile != null || configFile != null;
    }
}
