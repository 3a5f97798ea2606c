// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The configuration of access: roles, who has them, tokens and quotas, as {@code access.yaml} gives them. */
@NullMarked
package io.nereid.access.config;

import org.jspecify.annotations.NullMarked;
