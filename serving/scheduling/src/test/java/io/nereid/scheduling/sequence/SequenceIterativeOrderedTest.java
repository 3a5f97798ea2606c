// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import io.nereid.spi.config.SequenceBatching.Oldest;
import java.time.Duration;
import java.util.List;

class SequenceIterativeOrderedTest extends SequenceIterativeRules {
    @Override
    void choose() {
        fixture.strategy = new Oldest(4, List.of(), Duration.ZERO, true);
    }
}
