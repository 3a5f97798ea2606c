// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** What planning for a cluster needs to know of it: settings, objects that are there, and KServe's own catalogue. */
@NullMarked
package io.nereid.control.kubernetes.cluster;

import org.jspecify.annotations.NullMarked;
