// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.s3;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.spi.ObjectStream;
import java.io.IOException;
import software.amazon.awssdk.core.ResponseInputStream;
import software.amazon.awssdk.core.exception.SdkException;
import software.amazon.awssdk.services.s3.model.GetObjectResponse;
import software.amazon.awssdk.services.s3.model.ServerSideEncryption;

/** The body of a response. One thread reads, any thread may close. */
final class S3ObjectStream implements ObjectStream {
    private final ResponseInputStream<GetObjectResponse> in;
    private final String what;
    private long left;
    private volatile boolean complete;

    S3ObjectStream(ResponseInputStream<GetObjectResponse> in, String what) {
        this.in = in;
        this.what = what;
        Long length = in.response().contentLength();
        this.left = length == null ? -1 : length;
    }

    /** Reads to the end of the stream with the last byte, where the SDK compares the checksum. */
    @Override
    public int read(byte[] buffer, int limit) throws IOException {
        try {
            int n = in.read(buffer, 0, limit);
            if (n > 0 && left > 0) {
                left -= n;
            }
            if (n < 0 || left == 0 && in.read() < 0) {
                complete = true;
            }
            return n;
        } catch (SdkException e) {
            if (String.valueOf(e.getMessage()).contains("checksum")) {
                throw ServingException.of(
                        ErrorCode.DATA_LOSS,
                        what + ": the content does not have the checksum that the store gives: " + e.getMessage(),
                        "upload it again");
            }
            throw new IOException(e.getMessage(), e);
        }
    }

    @Override
    public boolean opaqueTag() {
        GetObjectResponse response = in.response();
        ServerSideEncryption encryption = response.serverSideEncryption();
        return response.sseCustomerAlgorithm() != null
                || encryption == ServerSideEncryption.AWS_KMS
                || encryption == ServerSideEncryption.AWS_KMS_DSSE;
    }

    /** Keeps the connection for the next request when everything was read, else ends it. */
    @Override
    public void close() {
        if (!complete) {
            in.abort();
            return;
        }
        try {
            in.close();
        } catch (IOException e) {
            in.abort();
        }
    }
}
