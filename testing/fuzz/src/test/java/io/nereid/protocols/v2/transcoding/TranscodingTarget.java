// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.transcoding;

import com.google.protobuf.InvalidProtocolBufferException;
import io.nereid.base.ServingException;
import io.nereid.fuzz.FuzzTarget;
import io.nereid.fuzz.FuzzTargets;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferResponse;
import java.util.Arrays;
import java.util.List;

/**
 * Requests and responses on their way between REST and gRPC; the first byte chooses kind and direction. What is converted to a message
 * is converted back to JSON, and that to the same message. Confined to one thread.
 */
public final class TranscodingTarget implements FuzzTarget {
    private final ProtoToJson toJson = new ProtoToJson(ServingException::invalidArgument);

    @Override
    public void read(byte[] input) throws InvalidProtocolBufferException {
        if (input.length == 0) {
            return;
        }
        byte[] rest = Arrays.copyOfRange(input, 1, input.length);
        switch (input[0] & 3) {
            case 0 -> request(rest);
            case 1 -> answer(rest);
            case 2 -> {
                ModelInferRequest message = parsed(rest, true) instanceof ModelInferRequest r ? r : null;
                if (message != null) {
                    toJson.request(message);
                }
            }
            default -> {
                ModelInferResponse message = parsed(rest, false) instanceof ModelInferResponse r ? r : null;
                if (message != null) {
                    toJson.answer(message);
                }
            }
        }
    }

    private static Object parsed(byte[] bytes, boolean request) {
        try {
            return request ? ModelInferRequest.parseFrom(bytes) : ModelInferResponse.parseFrom(bytes);
        } catch (InvalidProtocolBufferException e) {
            return null;
        }
    }

    private void request(byte[] json) throws InvalidProtocolBufferException {
        byte[] message;
        try (JsonToProto read = JsonToProto.request(json)) {
            message = read.requestMessage("m", "1");
        }
        byte[] back = toJson.request(ModelInferRequest.parseFrom(message));
        try (JsonToProto read = JsonToProto.request(back)) {
            same(message, read.requestMessage("m", "1"), back);
        }
    }

    private void answer(byte[] json) throws InvalidProtocolBufferException {
        byte[] message;
        try (JsonToProto read = JsonToProto.answer(json)) {
            message = read.answerMessage("m", "1", true);
        }
        byte[] back = toJson.answer(ModelInferResponse.parseFrom(message));
        try (JsonToProto read = JsonToProto.answer(back)) {
            same(message, read.answerMessage("m", "1", true), back);
        }
    }

    private static void same(byte[] first, byte[] again, byte[] json) throws InvalidProtocolBufferException {
        if (first.length != again.length) {
            throw new AssertionError("converted to JSON and back, the message has " + again.length + " bytes, not "
                    + first.length + ": " + new String(json, java.nio.charset.StandardCharsets.UTF_8));
        }
    }

    @Override
    public List<byte[]> seeds() {
        return FuzzTargets.texts(
                "P{\"id\":\"7\",\"parameters\":{\"a\":1,\"b\":true,\"c\":\"x\",\"d\":1.5},\"inputs\":[{\"name\":\"x\",\"shape\":[2,2],"
                        + "\"datatype\":\"FP32\",\"parameters\":{\"p\":1},\"data\":[[1.5,-2e3],[1,0.25]]},"
                        + "{\"name\":\"t\",\"shape\":[1],\"datatype\":\"BYTES\",\"data\":[\"a\\u00e9\"]}],\"outputs\":[{\"name\":\"y\"}]}",
                "Q{\"model_name\":\"m\",\"id\":\"7\",\"outputs\":[{\"name\":\"x\",\"shape\":[2],\"datatype\":\"INT64\",\"data\":[1,-2]},"
                        + "{\"name\":\"b\",\"shape\":[1],\"datatype\":\"BOOL\",\"data\":[true]}]}",
                "R\n\1m\32\0017*\r\n\1x\22\4FP32\32\1\1*\0:\4\0\0\0\0",
                "S\n\1m*\n\n\1x\22\4INT8\32\1\0012\1\7");
    }
}
