// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Steps in Java before and after a model, which a jar brings: what they implement, and how they are run. */
@NullMarked
package io.nereid.transform;

import org.jspecify.annotations.NullMarked;
