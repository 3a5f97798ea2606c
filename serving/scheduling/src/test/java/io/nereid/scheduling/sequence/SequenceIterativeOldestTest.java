// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

class SequenceIterativeOldestTest extends SequenceIterativeRules {
    @Override
    void choose() {
        fixture.strategy = SequenceFixture.oldest(4, 0);
    }
}
