// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.nodeagent;

import java.nio.file.Path;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Downloads models into directories. Implementations are thread-safe for different directories. */
@FunctionalInterface
public interface ModelFetcher {
    /**
     * Downloads a model; blocks. A download that was interrupted continues with what is in the directory.
     *
     * @param directory made if it is absent
     * @param most the bytes that the model may have
     * @param progress called on the threads of the download; ends it by an exception
     * @throws io.nereid.base.ServingException when the model cannot be downloaded, and what the progress has thrown
     */
    void fetch(Source source, Path directory, long most, Progress progress);

    /**
     * Where a model comes from. Immutable.
     *
     * @param namespace the namespace of the secrets
     * @param account the service account whose secrets are used; null for the default one
     * @param key the entry of the storage secret; null for none
     * @param parameters override those of the entry
     */
    record Source(
            String uri,
            String namespace,
            @Nullable String account,
            @Nullable String key,
            Map<String, String> parameters) {}

    /** Receives how far a download is. */
    @FunctionalInterface
    interface Progress {
        /**
         * Called as bytes arrive; an exception ends the download.
         *
         * @param bytes downloaded so far, those of earlier attempts included
         * @param total of all; -1 while unknown
         */
        void on(long bytes, long total);
    }
}
