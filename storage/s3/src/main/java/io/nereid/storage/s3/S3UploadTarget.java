// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.s3;

import io.nereid.storage.spi.StorageContext;
import io.nereid.storage.spi.UploadTarget;
import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.services.s3.model.PutObjectRequest;
import software.amazon.awssdk.services.s3.model.S3Exception;

/** Writes objects below a prefix. Thread-safe. Its session is never closed: a target has no end. */
final class S3UploadTarget implements UploadTarget {
    private final StorageContext context;
    private final S3Location location;
    private final S3Session session;

    S3UploadTarget(StorageContext context, S3Location location, S3Session session) {
        this.context = context;
        this.location = location;
        this.session = session;
    }

    @Override
    public void put(String key, String type, byte[] bytes) {
        String name = UploadTarget.below(location.prefix(), key);
        String what = location.shown(name);
        PutObjectRequest request = PutObjectRequest.builder()
                .bucket(location.bucket())
                .key(name)
                .contentType(type)
                .build();
        try {
            session.attempt(what, context.cancel(), s3 -> s3.putObject(request, RequestBody.fromBytes(bytes)));
        } catch (S3Exception e) {
            String code = S3Session.code(e);
            // S3 answers 400 to a body that arrives too slowly.
            int status = e.statusCode() == 400 && code.equals("RequestTimeout") ? 408 : e.statusCode();
            throw context.failures().ofWriting(what, status, code);
        }
    }
}
