// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The exposition of metrics: Prometheus' text format and OpenMetrics, and the choice between them. */
@NullMarked
package io.nereid.observe.metrics;

import org.jspecify.annotations.NullMarked;
