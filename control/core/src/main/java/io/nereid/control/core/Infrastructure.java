// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import java.util.List;
import java.util.function.BiConsumer;

/** Where plans come true: this machine, or Kubernetes. Implementations are thread-safe; no method waits for anything. */
public interface Infrastructure extends AutoCloseable {
    /**
     * Makes these the service's workloads and its route, and ends its others; harmless when nothing is new. A workload that is
     * no longer planned ends when its last request has.
     */
    void apply(String namespace, String service, Plan plan);

    /** What runs of a service, by revision. */
    java.util.Map<String, Observed.State> observe(String namespace, String service);

    /** Tells {@code listener} namespace and name of every service of which something has changed. Once, before anything else. */
    void onChange(BiConsumer<String, String> listener);

    /** The last lines that a revision's processes wrote, or that its loading told; oldest first. */
    List<String> logs(String namespace, String revision, int most);

    @Override
    void close();
}
