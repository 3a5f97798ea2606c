// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The first stage of planning: what a component of a service is, made of the specification and the chosen runtime. The
 * second stage makes the forms of one machine ({@code io.nereid.control.core.local}) or of Kubernetes of it.
 */
@NullMarked
package io.nereid.control.core.component;

import org.jspecify.annotations.NullMarked;
