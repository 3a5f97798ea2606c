// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The tokenizer backend: converts text to token ids with Hugging Face's tokenizers, as a step before a language model.
 */
@NullMarked
package io.nereid.backends.tokenizer;

import org.jspecify.annotations.NullMarked;
