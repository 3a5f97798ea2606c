// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The reports of a performance measurement: tables, JSON, CSV, charts and pages. */
@NullMarked
package io.nereid.app.perf.report;

import org.jspecify.annotations.NullMarked;
