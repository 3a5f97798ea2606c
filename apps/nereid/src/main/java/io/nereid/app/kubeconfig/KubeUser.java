// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.kubeconfig;

import io.nereid.transport.tls.PemFile;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A user of a kubeconfig. At most one of basic, token, token file and plugin is there. Immutable.
 *
 * @param name its name in the file
 * @param basic user name and password, separated by a colon
 * @param tokenFile is read for each request, as its content is replaced from time to time
 * @param certificate the client certificate; null for none
 * @param key its private key
 * @param impersonation the headers by which the user acts as another one
 */
record KubeUser(
        String name,
        @Nullable String basic,
        @Nullable String token,
        @Nullable Path tokenFile,
        @Nullable PemFile certificate,
        @Nullable PemFile key,
        @Nullable ExecPlugin plugin,
        Map<String, List<String>> impersonation) {
    /** What the credentials are, for messages. */
    String shown() {
        String kind = basic != null
                ? "the password"
                : token != null
                        ? "the token"
                        : tokenFile != null
                                ? "the token of '" + tokenFile + "'"
                                : plugin != null
                                        ? "the credentials of the plugin '" + plugin.command() + "'"
                                        : certificate != null
                                                ? "the client certificate"
                                                : "requests without credentials";
        return name.isEmpty() ? kind : kind + " of the user \"" + name + "\"";
    }

    /** How to get credentials that are accepted. */
    String remedy() {
        return plugin != null
                ? "log in again with the program that the plugin belongs to"
                : token == null && tokenFile == null && basic == null && certificate == null
                        ? "name a user with credentials in the context, or give --token-file"
                        : "they may have expired or been withdrawn: get new ones from the administrator of the cluster";
    }

    /** Without credentials. */
    @Override
    public String toString() {
        return "KubeUser[" + name + "]";
    }
}
