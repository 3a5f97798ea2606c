// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Models that nodes keep: which node keeps which model, the objects and statuses of that, and the services that use them. */
@NullMarked
package io.nereid.control.kubernetes.localmodel;

import org.jspecify.annotations.NullMarked;
