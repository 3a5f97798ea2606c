// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver.http;

import io.nereid.fuzz.FuzzTarget;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** The protobuf envelope of kubectl's requests. Confined to one thread. */
public final class KubernetesProtobufTarget implements FuzzTarget {
    @Override
    public void read(byte[] input) throws Exception {
        try {
            KubernetesProtobuf.read(input);
        } catch (ErrorResponseException e) {
            // The API server's own form of a refusal.
        }
    }

    @Override
    public List<byte[]> seeds() {
        return List.of("k8s\0\n\17\n\2v1\22\tNamespace\22\5\n\3\n\1n".getBytes(StandardCharsets.ISO_8859_1));
    }
}
