// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** KServe's Standard mode: the objects of a service, and its status. */
@NullMarked
package io.nereid.control.kubernetes.standard;

import org.jspecify.annotations.NullMarked;
