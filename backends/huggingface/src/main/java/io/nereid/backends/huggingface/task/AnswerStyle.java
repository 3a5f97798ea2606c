// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.task;

/** The form of the answers. */
public enum AnswerStyle {
    /** Named outputs, as transformers' pipelines have them. */
    PIPELINE,
    /** The one output of KServe's server, with what is most probable. */
    KSERVE,
    /** The one output of KServe's server, with all probabilities. */
    KSERVE_PROBABILITIES,
    /** The one output of KServe's server, with the numbers of the model. */
    KSERVE_LOGITS
}
