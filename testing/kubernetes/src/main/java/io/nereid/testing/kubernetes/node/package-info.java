/**
 * A node whose pods are processes: each pod has a network namespace with an address of its own, each container a file
 * system of its own over the machine's. It needs the namespaces of {@code testing/kubernetes/network.sh}.
 */
@NullMarked
package io.nereid.testing.kubernetes.node;

import org.jspecify.annotations.NullMarked;
