// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.scheduling.ReschedulableJob;
import org.junit.jupiter.api.Test;

class SequenceIterativeDirectTest extends SequenceIterativeRules {
    @Override
    void choose() {
        fixture.strategy = SequenceFixture.DIRECT;
    }

    @Test
    void cannotComeBackToAModelThatIsNotIterative() {
        fixture.iterative = false;
        SequenceBatcher batcher = fixture.open();
        fixture.puppet.instead = job -> ((ReschedulableJob) job).reschedule();
        FakeSequenceJob request = fixture.submit(batcher, "1 SE");
        fixture.runAll();
        assertThat(request.code).isEqualTo(ErrorCode.FAILED_PRECONDITION);
        assertThat(request.error).hasMessageContaining("not iterative");
        fixture.end(batcher);
    }
}
