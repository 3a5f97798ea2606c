// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The PyTorch backend: runs TorchScript archives on libtorch, through DJL's binding. A plugin. */
@NullMarked
package io.nereid.backends.pytorch;

import org.jspecify.annotations.NullMarked;
