// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.openai;

import io.nereid.base.ServingException;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpStatusCodes;
import io.nereid.transport.api.ResponseBody;
import java.nio.charset.StandardCharsets;

/** Errors in OpenAI's form: an object with {@code message}, {@code type}, {@code param} and {@code code}. Holds no state. */
final class OpenAiErrors {
    private OpenAiErrors() {}

    static HttpReply reply(ServingException e) {
        int status = HttpStatusCodes.http(e.code());
        String type = switch (e.code()) {
            case UNAUTHENTICATED -> "authentication_error";
            case PERMISSION_DENIED -> "permission_error";
            case RESOURCE_EXHAUSTED -> "rate_limit_error";
            default -> status < 500 ? "invalid_request_error" : "server_error";
        };
        String code = switch (e.code()) {
            case NOT_FOUND -> "\"model_not_found\"";
            case UNAUTHENTICATED -> "\"invalid_api_key\"";
            case RESOURCE_EXHAUSTED -> "\"rate_limit_exceeded\"";
            default -> "null";
        };
        String text = "{\"error\":{\"message\":" + HttpReply.quote(e.describe()) + ",\"type\":\"" + type
                + "\",\"param\":null,\"code\":" + code + "}}";
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        // The headers of every protocol: how to authenticate, and when to try again.
        return new HttpReply(
                status, HttpReply.JSON, HttpReply.error(e).headers(), new ResponseBody(bytes, bytes.length));
    }
}
