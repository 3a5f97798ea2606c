// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Limits on the use of models by callers: quotas of keys and of models, and fair shares between keys. */
@NullMarked
package io.nereid.access.quota;

import org.jspecify.annotations.NullMarked;
