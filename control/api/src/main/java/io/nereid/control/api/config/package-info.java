// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The settings of KServe's ConfigMap inferenceservice-config. */
@NullMarked
package io.nereid.control.api.config;

import org.jspecify.annotations.NullMarked;
