// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The agent of a node: keeps the models that its LocalModelNode lists, within the limit of its group. */
@NullMarked
package io.nereid.control.operator.nodeagent;

import org.jspecify.annotations.NullMarked;
