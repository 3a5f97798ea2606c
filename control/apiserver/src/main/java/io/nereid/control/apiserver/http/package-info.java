// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Requests and responses of the Kubernetes API: parsing, content types, the filter against foreign origins. */
@NullMarked
package io.nereid.control.apiserver.http;

import org.jspecify.annotations.NullMarked;
