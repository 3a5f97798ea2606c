// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.infer;

/**
 * An entry of the repository index. Immutable.
 *
 * @param name the model
 * @param version its version; empty for a model that has none loaded
 * @param state {@code READY}, {@code LOADING}, {@code UNLOADING}, {@code UNAVAILABLE}, or empty
 * @param reason why it is not ready; may be empty
 */
public record RepositoryModel(String name, String version, String state, String reason) {}
