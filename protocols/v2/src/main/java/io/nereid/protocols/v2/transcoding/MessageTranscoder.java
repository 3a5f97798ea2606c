// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.transcoding;

import com.google.protobuf.InvalidProtocolBufferException;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferResponse;

/**
 * Converts inference requests and responses between protobuf ({@code ModelInferRequest}, {@code ModelInferResponse})
 * and V2 JSON, in both directions, with the parameters of their tensors. Holds no state.
 */
final class MessageTranscoder {
    private MessageTranscoder() {}

    /**
     * Converts a JSON request to a message. Contents are typed, which every server accepts, unless an input is FP16 or
     * BF16, which have no typed form.
     *
     * @param model the model's name
     * @param version the requested version; empty for any
     * @throws ServingException INVALID_ARGUMENT for a body that is not a V2 request in JSON
     */
    static byte[] request(String model, String version, byte[] body) {
        try (JsonToProto request = JsonToProto.request(body)) {
            return request.requestMessage(model, version);
        }
    }

    /**
     * Converts a response message to JSON.
     *
     * @throws ServingException INTERNAL for an invalid message
     */
    static byte[] answer(byte[] message) {
        try {
            return new ProtoToJson(MessageTranscoder::wrong).answer(ModelInferResponse.parseFrom(message));
        } catch (InvalidProtocolBufferException e) {
            throw wrong("it is not a ModelInferResponse");
        }
    }

    private static ServingException wrong(String why) {
        return ServingException.of(ErrorCode.INTERNAL, "the service's response is malformed: " + why);
    }

    /**
     * Converts a request message to JSON, which does not contain model and version: these are in the path.
     *
     * @throws ServingException INVALID_ARGUMENT for an inconsistent message, and for tensors in shared memory
     */
    static byte[] body(ModelInferRequest request) {
        return new ProtoToJson(
                        why -> ServingException.invalidArgument("the request cannot be converted to JSON: " + why))
                .request(request);
    }

    /**
     * Converts a JSON response to a message.
     *
     * @param model the requested model, used when the response does not name one
     * @param id the request's id, used when the response has none
     * @param raw whether to write raw contents, as for clients that send them
     * @throws ServingException FAILED_PRECONDITION for a body that is not a V2 response
     */
    static byte[] message(String model, String id, byte[] body, boolean raw) {
        try (JsonToProto answer = JsonToProto.answer(body)) {
            return answer.answerMessage(model, id, raw);
        } catch (ServingException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "the service answered " + RestMetadata.beginning(body) + ", which is not a V2 inference response: "
                            + e.getMessage(),
                    "make it respond in V2, or call it over REST",
                    e);
        }
    }
}
