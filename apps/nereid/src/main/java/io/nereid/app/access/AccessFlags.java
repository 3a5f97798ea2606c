// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.access;

import io.nereid.access.AccessOptions;
import io.nereid.base.Clock;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** The options that say who may do what. Set by picocli, then only read. */
@SuppressWarnings("NullAway.Init") // options are set by picocli
public final class AccessFlags {
    @Option(
            names = "--api-keys",
            paramLabel = "FILE",
            description = "API keys that clients must send; made with nereid keys. Read again when it changes.")
    public Path apiKeys;

    @Option(
            names = "--access-config",
            paramLabel = "FILE",
            description =
                    "Roles, tokens (JWT), client certificates and quotas: access.yaml. Read again when it changes.")
    public Path accessConfig;

    @Option(
            names = "--open-management",
            description =
                    "Let everyone who reaches the port load models and change settings. Without it, that is open to"
                            + " local clients only, and only where every address is a loopback address.")
    public boolean openManagement;

    @Option(
            names = "--audit-log",
            paramLabel = "FILE",
            description =
                    "Write who did what to this file as JSON lines: everything that needs more than the permission"
                            + " to infer, and every refusal.")
    @Nullable Path auditLog;

    @Option(
            names = "--cors-origin",
            paramLabel = "ORIGIN",
            description = "Origin of web pages that may call the HTTP APIs, such as https://app.example, or *; may be"
                    + " repeated. Off by default. Pages need the same permissions as other clients.")
    public List<String> corsOrigins = new ArrayList<>();

    /** Whether callers are known by credentials. */
    public boolean hasCredentials() {
        return apiKeys != null || accessConfig != null;
    }

    /** The options of access. */
    public AccessOptions options(
            Set<String> localHosts, List<String> httpRestrictions, List<String> grpcRestrictions, Clock clock) {
        return new AccessOptions(
                apiKeys,
                accessConfig,
                openManagement,
                localHosts,
                httpRestrictions,
                grpcRestrictions,
                null,
                auditLog,
                clock);
    }
}
