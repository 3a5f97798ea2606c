// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * A storage request and what belongs to it: URI, options, credentials, settings, progress, cancellation, and the
 * lease that it returns.
 */
@NullMarked
package io.nereid.storage.request;

import org.jspecify.annotations.NullMarked;
