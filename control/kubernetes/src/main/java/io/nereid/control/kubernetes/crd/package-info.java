// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The CustomResourceDefinitions of the kinds of KServe that the operator serves. */
@NullMarked
package io.nereid.control.kubernetes.crd;

import org.jspecify.annotations.NullMarked;
