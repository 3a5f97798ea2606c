// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * What the application provides to the local control plane: settings, artifact fetching and in-process components.
 */
@NullMarked
package io.nereid.control.local.spi;

import org.jspecify.annotations.NullMarked;
