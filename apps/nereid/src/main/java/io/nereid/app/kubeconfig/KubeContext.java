// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.kubeconfig;

/**
 * A context of a kubeconfig: a cluster, the user that calls it, and a namespace. Immutable.
 *
 * @param file where the context is from, for messages
 * @param namespace the namespace of commands that name none
 */
record KubeContext(String name, String file, String namespace, KubeCluster cluster, KubeUser user) {
    /** As messages name it. */
    String shown() {
        return cluster.server().url() + " (context \"" + name + "\" of " + file + ")";
    }
}
