// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.scheduling.execution.SequenceStage;
import io.nereid.scheduling.sequence.SequenceBatcher;
import org.junit.jupiter.api.Test;

class SequenceIterativeDirectTest extends SequenceIterativeRules {
    @Override
    void choose() {
        stage.strategy = SequenceStage.DIRECT;
    }

    @Test
    void cannotComeBackToAModelThatIsNotIterative() {
        stage.iterative = false;
        SequenceBatcher batcher = stage.open();
        stage.puppet.instead = job -> ((ReschedulableJob) job).reschedule();
        Turn turn = stage.submit(batcher, "1 SE");
        stage.runAll();
        assertThat(turn.code).isEqualTo(ErrorCode.FAILED_PRECONDITION);
        assertThat(turn.error).hasMessageContaining("not iterative");
        stage.end(batcher);
    }
}
