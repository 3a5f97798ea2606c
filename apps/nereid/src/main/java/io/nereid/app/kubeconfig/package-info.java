// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Kubeconfig files: which cluster a command reaches, and with which credentials. */
@NullMarked
package io.nereid.app.kubeconfig;

import org.jspecify.annotations.NullMarked;
