// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Models in the process of an application: loading, typed predictions, streams, hot reload. */
@NullMarked
package io.nereid.embedded;

import org.jspecify.annotations.NullMarked;
