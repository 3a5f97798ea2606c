// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.management;

import io.nereid.spi.config.VersionPolicy;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * An entry of the model list, as in TensorFlow Serving's {@code model_config_list}. Immutable.
 *
 * @param name the model's name
 * @param basePath the directory that contains one directory for each version
 * @param platform {@code tensorflow} for any format that is found there, or the platform or backend that must run
 *     it
 * @param versionPolicy which versions are served; null for the policy of the model's own configuration, or else
 *     the highest version
 * @param labels the version labels by name
 * @param logging which requests are logged to files; null for none
 */
public record ModelListEntry(
        String name,
        String basePath,
        String platform,
        @Nullable VersionPolicy versionPolicy,
        Map<String, VersionLabel> labels,
        @Nullable LoggingConfig logging) {}
