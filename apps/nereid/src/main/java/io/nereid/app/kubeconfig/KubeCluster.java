// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.kubeconfig;

import io.nereid.app.connection.ServerAddress;
import io.nereid.transport.tls.PemFile;
import java.net.InetSocketAddress;
import org.jspecify.annotations.Nullable;

/**
 * A cluster of a kubeconfig. Immutable.
 *
 * @param name its name in the file
 * @param server the address of its API server
 * @param authorities the authorities of the server's certificate; null for those of the Java runtime
 * @param authoritiesText the same as PEM, for credential plugins; null for none
 * @param unverified whether the file asks for any certificate to be accepted
 * @param proxy the HTTP proxy, unresolved; null for none
 */
record KubeCluster(
        String name,
        ServerAddress server,
        @Nullable PemFile authorities,
        byte @Nullable [] authoritiesText,
        boolean unverified,
        @Nullable InetSocketAddress proxy) {}
