// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * What clients of a cluster ask for besides resources: the definitions of the kinds, Services, and reviews of what a caller
 * may do.
 */
@NullMarked
package io.nereid.control.apiserver.cluster;

import org.jspecify.annotations.NullMarked;
