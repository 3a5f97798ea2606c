// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * Loading, version transitions and unloading of models: the manager, its loop, the executor of loads, and callers that
 * wait for states.
 */
@NullMarked
package io.nereid.lifecycle;

import org.jspecify.annotations.NullMarked;
