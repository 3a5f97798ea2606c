// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.process;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.net.InetAddress;
import java.net.ServerSocket;
import org.junit.jupiter.api.Test;

class PortAllocatorTest {
    @Test
    void twoServersOnOneMachineNeverAssignTheSamePort() {
        PortAllocator one = new PortAllocator(18_730, 18_733);
        PortAllocator other = new PortAllocator(18_730, 18_733);
        assertThat(new int[] {one.any(), other.any(), one.any(), other.any()}).doesNotHaveDuplicates();
        assertThatThrownBy(other::any)
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.RESOURCE_EXHAUSTED))
                .hasMessageContaining("no free port from 18730 to 18733");
        for (int port = 18_730; port <= 18_733; port++) {
            one.release(port);
            other.release(port);
        }
        assertThat(other.take(18_730)).isTrue();
        assertThat(one.take(18_730)).isFalse();
        other.release(18_730);
        assertThat(one.take(18_730)).isTrue();
        one.release(18_730);
    }

    @Test
    void aPortOnWhichAProgramListensIsSkipped() throws Exception {
        try (ServerSocket listening = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            int port = listening.getLocalPort();
            assertThat(new PortAllocator(port, port).take(port)).isFalse();
        }
    }
}
