// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** PyTorch's TorchScript archives on libtorch, called through DJL's binding; a plugin. */
@NullMarked
package io.nereid.backends.pytorch;

import org.jspecify.annotations.NullMarked;
