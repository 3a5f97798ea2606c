// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Services of KServe's Knative mode as Knative Services, and their routes as Istio's VirtualServices. */
@NullMarked
package io.nereid.control.kubernetes.knative;

import org.jspecify.annotations.NullMarked;
