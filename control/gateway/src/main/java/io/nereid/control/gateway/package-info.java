// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Finds the service that a request is for, and the revision that answers. */
@NullMarked
package io.nereid.control.gateway;

import org.jspecify.annotations.NullMarked;
