// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.polling;

import io.nereid.backend.Backend;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.Loader;
import io.nereid.spi.config.ModelConfig;

/** Creates the loader of one stored version. Implementations must be thread-safe, fast, and free of I/O. */
@FunctionalInterface
public interface LoaderFactory {
    /**
     * Creates a loader for one version. Every emission creates a new one, even if it will not be used.
     *
     * @param source the version's files
     * @param config the model's configuration, with name, backend, platform and labels filled in; other fields as given
     * @param backend the backend that {@code config} names or that recognised the files
     * @param fingerprint changes whenever a reload would give a different result
     */
    Loader create(ModelLocation source, ModelConfig config, Backend backend, String fingerprint);

    /**
     * Creates a loader for one version of an ensemble, which does not have a backend. It must return the models of the
     * steps as {@link Loader#dependencies} and support {@link Loader#newLoader}.
     *
     * @param source the version's files: the model's own directory if there is no version directory
     * @param config as for {@link #create}, with {@link ModelConfig#ensemble}
     * @param fingerprint changes whenever a reload would give a different result
     * @throws ServingException UNIMPLEMENTED if ensembles are not supported
     */
    default Loader ensemble(ModelLocation source, ModelConfig config, String fingerprint) {
        throw ServingException.of(
                ErrorCode.UNIMPLEMENTED,
                "model '" + config.name() + "' is an ensemble, which this server does not run");
    }
}
