// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.polling;

import io.nereid.backend.Backend;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.Loader;
import io.nereid.spi.ModelConfig;

/** Makes the loader of one stored version. Implementations are thread-safe, cheap, and do no I/O. */
@FunctionalInterface
public interface LoaderFactory {
    /**
     * A loader for one version; a new one for every emission, whether or not it will be used.
     *
     * @param source where the version's files lie
     * @param config what the repository says of the model: name, backend, platform, labels filled in; anything else
     *     as far as it was given
     * @param backend the backend that {@code config} names or that recognised the files
     * @param fingerprint changes whenever a reload would give something else
     */
    Loader create(ModelLocation source, ModelConfig config, Backend backend, String fingerprint);

    /**
     * A loader for one version of an ensemble, which no backend runs. It must name the models of the steps as
     * {@link Loader#dependencies} and support {@link Loader#again}.
     *
     * @param source where the version's files lie: the model's own directory where there is no version directory
     * @param config as for {@link #create}, {@link ModelConfig#ensemble} being set
     * @param fingerprint changes whenever a reload would give something else
     * @throws ServingException UNIMPLEMENTED where there are no ensembles
     */
    default Loader ensemble(ModelLocation source, ModelConfig config, String fingerprint) {
        throw ServingException.of(
                ErrorCode.UNIMPLEMENTED,
                "model '" + config.name() + "' is an ensemble, which this server does not run");
    }
}
