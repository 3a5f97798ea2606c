// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The objects that an installation of the operator consists of. */
@NullMarked
package io.nereid.control.kubernetes.manifest;

import org.jspecify.annotations.NullMarked;
