// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** {@code nereid tune}: finds the batching, instances and threads of a model that serve most requests within a latency limit. */
@NullMarked
package io.nereid.app.tune;

import org.jspecify.annotations.NullMarked;
