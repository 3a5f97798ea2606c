// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Text to tokens, by the tokenizers of Hugging Face, for a step before a language model. */
@NullMarked
package io.nereid.backends.tokenizer;

import org.jspecify.annotations.NullMarked;
