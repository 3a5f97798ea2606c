// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import io.nereid.control.core.Workload;
import java.nio.file.Path;
import java.util.List;

/** What comes with the server and runs in its process beside the models. Implementations are thread-safe. */
@FunctionalInterface
public interface BuiltIns {
    /**
     * Makes an explainer ready; may take long.
     *
     * @param workload the revision that it is
     * @param form what it is to be
     * @param files the fetched artifacts of {@code form}, in their order
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a method or a setting that there is not
     */
    Running explainer(Workload workload, Workload.Explainer form, List<Path> files);

    /** Something that has been made ready, until it is closed. */
    interface Running extends AutoCloseable {
        @Override
        void close();
    }
}
