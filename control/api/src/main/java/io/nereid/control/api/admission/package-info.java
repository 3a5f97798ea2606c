// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Admission of resources: defaulting, validation, and warnings for fields without an effect. */
@NullMarked
package io.nereid.control.api.admission;

import org.jspecify.annotations.NullMarked;
