// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** What the server tells about itself: statistics, traces, settings. */
@NullMarked
package io.nereid.observe;

import org.jspecify.annotations.NullMarked;
