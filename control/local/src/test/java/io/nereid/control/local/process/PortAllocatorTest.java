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
        PortAllocator one = new PortAllocator(33_200, 33_203);
        PortAllocator other = new PortAllocator(33_200, 33_203);
        assertThat(new int[] {one.any(), other.any(), one.any(), other.any()}).doesNotHaveDuplicates();
        assertThatThrownBy(other::any)
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.RESOURCE_EXHAUSTED))
                .hasMessageContaining("no free port from 33200 to 33203");
        for (int port = 33_200; port <= 33_203; port++) {
            one.release(port);
            other.release(port);
        }
        assertThat(other.take(33_200)).isTrue();
        assertThat(one.take(33_200)).isFalse();
        other.release(33_200);
        assertThat(one.take(33_200)).isTrue();
        one.release(33_200);
    }

    @Test
    void aPortOnWhichAProgramListensIsSkipped() throws Exception {
        try (ServerSocket listening = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            int port = listening.getLocalPort();
            assertThat(new PortAllocator(port, port).take(port)).isFalse();
        }
    }
}
