// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import java.util.List;
import java.util.Map;

/** Observes the workloads that run. Implementations are thread-safe, and no method blocks. */
public interface WorkloadObserver {
    /** Observes no workloads. */
    WorkloadObserver NONE = new WorkloadObserver() {
        @Override
        public Map<String, WorkloadState> observe(String namespace, String service) {
            return Map.of();
        }

        @Override
        public List<String> logs(String namespace, String revision, int most) {
            return List.of();
        }
    };

    /** The states of a service's workloads by revision. */
    Map<String, WorkloadState> observe(String namespace, String service);

    /**
     * The last lines of a revision's log, written by its processes or by the loading of its model; oldest first. Each
     * begins with a timestamp and a space.
     */
    List<String> logs(String namespace, String revision, int most);
}
