// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.controlplane;

import io.nereid.storage.request.StorageOptions;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * How a server gets models by storage URI. Immutable.
 *
 * @param storage from where, and the cache
 * @param file the file with the models; null for those that clients load
 */
public record StoredModels(StorageOptions storage, @Nullable Path file) {}
