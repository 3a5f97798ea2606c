// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import io.nereid.control.core.Observed.Failure;
import io.nereid.control.core.Workload;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Runs what one revision is, in one of its forms. Confined to the deciding thread. */
interface Runner {
    /** Has so many replicas from now on; 0 gives everything back. */
    void scale(int replicas);

    /** How many answer. */
    int ready();

    /** What went wrong last, since it was last ready; null when nothing did. */
    @Nullable Failure failure();

    /** Whether it is failing now, rather than starting. */
    boolean failing();

    /** The most replicas that it can have. */
    int most();

    /** Ends everything and calls back when it is gone. */
    void end(Runnable ended);

    /** Makes runners. */
    @FunctionalInterface
    interface Factory {
        /**
         * A runner that runs nothing yet.
         *
         * @param files the fetched artifacts, in their order
         * @param gate where it says where it is to be found
         * @param log for people
         * @param changed to be called when what it tells has changed
         */
        Runner runner(Workload workload, List<Path> files, Front.Gate gate, RevisionLog log, Runnable changed);
    }
}
