// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import com.google.protobuf.InvalidProtocolBufferException;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferResponse;

/**
 * Lets a server that speaks gRPC alone be asked with V2 JSON, and one that speaks REST alone be asked over gRPC:
 * {@code ModelInferRequest} and {@code ModelInferResponse} become bodies of REST, and the other way round. Nothing is lost but
 * the form of numbers; parameters of tensors go along. Holds nothing; every call is of its own.
 */
final class V2Transcoder {
    private V2Transcoder() {}

    /**
     * The message for a body. Contents are typed, which every server takes, but for a request with FP16 or BF16 inputs, which
     * have no typed form.
     *
     * @param model the model's name
     * @param version that is asked for; empty for any
     * @throws ServingException INVALID_ARGUMENT for a body that is no V2 request in JSON
     */
    static byte[] request(String model, String version, byte[] body) {
        try (RestBody request = RestBody.request(body)) {
            return request.requestMessage(model, version);
        }
    }

    /**
     * The body for a message.
     *
     * @throws ServingException INTERNAL for a message that is no right answer
     */
    static byte[] answer(byte[] message) {
        try {
            return new RestText(V2Transcoder::wrong).answer(ModelInferResponse.parseFrom(message));
        } catch (InvalidProtocolBufferException e) {
            throw wrong("it is no ModelInferResponse");
        }
    }

    private static ServingException wrong(String why) {
        return ServingException.of(ErrorCode.INTERNAL, "the service's answer cannot be read: " + why);
    }

    /**
     * The body for a request that came as a message; whom it is for is not in it.
     *
     * @throws ServingException INVALID_ARGUMENT for one that contradicts itself, or whose tensors are in shared memory
     */
    static byte[] body(ModelInferRequest request) {
        return new RestText(why -> ServingException.invalidArgument("the request cannot be told in JSON: " + why))
                .request(request);
    }

    /**
     * The message for an answer that came as a body.
     *
     * @param model the model that was asked for, should the answer name none
     * @param id of the request, should the answer have none
     * @param raw whether contents are to be raw, as they are for clients that send them so
     * @throws ServingException FAILED_PRECONDITION for a body that is no answer of V2
     */
    static byte[] message(String model, String id, byte[] body, boolean raw) {
        try (RestBody answer = RestBody.answer(body)) {
            return answer.answerMessage(model, id, raw);
        } catch (ServingException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "the service answered " + RestFacts.beginning(body) + ", which is not a V2 inference response: "
                            + e.getMessage(),
                    "let it answer in V2, or call it over REST",
                    e);
        }
    }
}
