// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * Writing resources: create, update, patch, apply and delete; garbage collection and the lifecycle of namespaces.
 */
@NullMarked
package io.nereid.control.apiserver.write;

import org.jspecify.annotations.NullMarked;
