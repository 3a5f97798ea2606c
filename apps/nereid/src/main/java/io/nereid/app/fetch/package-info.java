// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** {@code nereid fetch}: fetches models into directories, as the init container of a pod does. */
@NullMarked
package io.nereid.app.fetch;

import org.jspecify.annotations.NullMarked;
