// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The handlers of V2's REST API, one for each group of paths. */
@NullMarked
package io.nereid.protocols.v2.rest;

import org.jspecify.annotations.NullMarked;
