// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** What the operator adds to an installation once the definitions of its kinds are there. */
@NullMarked
package io.nereid.control.operator.install;

import org.jspecify.annotations.NullMarked;
