// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * Runs InferenceGraphs: the endpoint of a graph, the execution of its nodes, and the conditions of steps in gjson's
 * syntax.
 */
@NullMarked
package io.nereid.control.graph;

import org.jspecify.annotations.NullMarked;
