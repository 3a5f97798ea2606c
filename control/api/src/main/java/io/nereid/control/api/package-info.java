// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** KServe's resources as records, the readers of their fields, and the port to the store of resources. */
@NullMarked
package io.nereid.control.api;

import org.jspecify.annotations.NullMarked;
