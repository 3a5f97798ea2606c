// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ApiVersionTest {
    @Test
    void aServerSupportsPluginsOfItsMajorVersionUpToItsMinorVersion() {
        ApiVersion server = new ApiVersion(2, 3);
        assertThat(server.supports(new ApiVersion(2, 3))).isTrue();
        assertThat(server.supports(new ApiVersion(2, 0))).isTrue();
        assertThat(server.supports(new ApiVersion(2, 4))).isFalse();
        assertThat(server.supports(new ApiVersion(1, 3))).isFalse();
        assertThat(server.supports(new ApiVersion(3, 0))).isFalse();
    }

    @Test
    void aVersionIsReadAsItIsPrinted() {
        assertThat(ApiVersion.parse(" 2.13 ")).isEqualTo(new ApiVersion(2, 13));
        assertThat(ApiVersion.parse(ApiVersion.CURRENT.toString())).isEqualTo(ApiVersion.CURRENT);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "1", "1.", "1.2.3", "1.x", "-1.0", "1.-2", "99999999999.0"})
    void anythingElseIsRejected(String text) {
        assertThatThrownBy(() -> ApiVersion.parse(text))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("'" + text + "' is not an API version");
    }
}
