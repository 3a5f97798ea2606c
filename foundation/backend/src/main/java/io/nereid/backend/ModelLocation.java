// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import io.nereid.spi.ServableId;
import java.nio.file.Path;

/**
 * The directories of one model version. Immutable.
 *
 * @param id the version
 * @param modelDirectory the model's directory (configuration, labels, warm-up data)
 * @param versionDirectory the version's directory inside it
 */
public record ModelLocation(ServableId id, Path modelDirectory, Path versionDirectory) {}
