// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The backend of Hugging Face's transformers: encoders served from their folders, text in and answers out. */
@NullMarked
package io.nereid.backends.huggingface;

import org.jspecify.annotations.NullMarked;
