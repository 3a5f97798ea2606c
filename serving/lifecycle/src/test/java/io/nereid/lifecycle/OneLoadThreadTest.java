// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

/** All test cases with a single load thread. */
class OneLoadThreadTest extends AspiredVersionsManagerTest {
    @Override
    int threads() {
        return 1;
    }
}
