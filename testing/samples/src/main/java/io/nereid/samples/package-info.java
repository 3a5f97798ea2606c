// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Backends for tests and examples, the counterparts of Triton's test backends. A plugin, which the product does not ship. */
@NullMarked
package io.nereid.samples;

import org.jspecify.annotations.NullMarked;
