// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The autoscaler of a revision, after Knative's KPA: measures the concurrency, averages it over a stable and a panic
 * window, and decides the number of replicas by pure functions.
 */
@NullMarked
package io.nereid.control.autoscaling;

import org.jspecify.annotations.NullMarked;
