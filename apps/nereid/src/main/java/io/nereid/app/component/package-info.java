// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * {@code nereid transformer} and {@code nereid explainer}: transformers and explainers of Nereid as processes of their own,
 * in front of a predictor that another server serves.
 */
@NullMarked
package io.nereid.app.component;

import org.jspecify.annotations.NullMarked;
