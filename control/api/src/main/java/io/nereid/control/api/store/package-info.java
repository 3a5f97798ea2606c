// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The port to the resource store, which the API server, the store and the controllers share. */
@NullMarked
package io.nereid.control.api.store;

import org.jspecify.annotations.NullMarked;
