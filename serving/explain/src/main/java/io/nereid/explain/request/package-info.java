// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** What an explanation request consists of: options, instances, feature columns and background rows. */
@NullMarked
package io.nereid.explain.request;

import org.jspecify.annotations.NullMarked;
