// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class HttpReplyTest {
    @Test
    void errorsAreJsonWhateverTheirText() {
        HttpReply reply = HttpReply.error(ServingException.of(ErrorCode.NOT_FOUND, "no \"x\"\n\u0001", "try y"));
        assertThat(reply.status()).isEqualTo(404);
        assertThat(new String(reply.content().text(), StandardCharsets.UTF_8))
                .isEqualTo("{\"error\":\"no \\\"x\\\"\\n\\u0001 (try y)\"}");
    }

    @ParameterizedTest
    @CsvSource({
        "OK,200", "INVALID_ARGUMENT,400", "FAILED_PRECONDITION,400", "UNAUTHENTICATED,401", "PERMISSION_DENIED,403",
        "NOT_FOUND,404", "ALREADY_EXISTS,409", "RESOURCE_EXHAUSTED,429", "CANCELLED,499", "INTERNAL,500",
        "UNIMPLEMENTED,501", "UNAVAILABLE,503", "DEADLINE_EXCEEDED,504"
    })
    void everyCodeHasItsStatus(ErrorCode code, int status) {
        assertThat(HttpStatusCodes.http(code)).isEqualTo(status);
    }

    @Test
    void contentCountsTextAndTensorsAndDropsWhatIsNotSent() {
        Tensor a = Tensor.allocate("a", DataType.INT8, Shape.of(3));
        Tensor b = Tensor.allocate("b", DataType.INT8, Shape.of(4));
        ResponseBody content = new ResponseBody("head".getBytes(StandardCharsets.UTF_8), 4)
                .splice(a, 2)
                .splice(b, 4);
        assertThat(content.length()).isEqualTo(11);
        assertThat(content.position(1)).isEqualTo(4);
        assertThat(content.tensor(0)).isSameAs(a);
        content.discard();
        assertThat(content.tensorCount()).isZero();
        assertThat(content.length()).isEqualTo(4);
    }
}
