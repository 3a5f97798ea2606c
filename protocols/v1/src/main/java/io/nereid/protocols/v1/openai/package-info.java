// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Embeddings and reranking of texts, in the forms of OpenAI, Cohere, Jina and vLLM, and OpenAI's list of models. */
@NullMarked
package io.nereid.protocols.v1.openai;

import org.jspecify.annotations.NullMarked;
