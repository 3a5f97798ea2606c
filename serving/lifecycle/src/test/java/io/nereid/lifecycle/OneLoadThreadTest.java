// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

/** All of it again with one load at a time. */
class OneLoadThreadTest extends AspiredVersionsManagerTest {
    @Override
    int threads() {
        return 1;
    }
}
