// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.scheduling.execution.SequenceStage;

class SequenceIterativeOldestTest extends SequenceIterativeRules {
    @Override
    void choose() {
        stage.strategy = SequenceStage.oldest(4, 0);
    }
}
