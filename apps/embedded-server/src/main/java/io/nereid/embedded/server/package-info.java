// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Network ports for the models of an application. */
@NullMarked
package io.nereid.embedded.server;

import org.jspecify.annotations.NullMarked;
