// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The control plane of a server: composes store, API, controllers, gateway and the components of services. */
@NullMarked
package io.nereid.app.controlplane;

import org.jspecify.annotations.NullMarked;
