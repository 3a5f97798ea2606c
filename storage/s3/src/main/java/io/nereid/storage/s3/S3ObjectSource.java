// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.s3;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.spi.CancellationToken;
import io.nereid.storage.spi.Checksum;
import io.nereid.storage.spi.ChecksumAlgorithm;
import io.nereid.storage.spi.ObjectChangedException;
import io.nereid.storage.spi.ObjectEntry;
import io.nereid.storage.spi.ObjectSource;
import io.nereid.storage.spi.ObjectStream;
import io.nereid.storage.spi.RangesIgnoredException;
import io.nereid.storage.spi.StorageContext;
import java.io.IOException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.core.ResponseInputStream;
import software.amazon.awssdk.services.s3.model.ChecksumMode;
import software.amazon.awssdk.services.s3.model.GetObjectRequest;
import software.amazon.awssdk.services.s3.model.GetObjectResponse;
import software.amazon.awssdk.services.s3.model.HeadObjectResponse;
import software.amazon.awssdk.services.s3.model.ListObjectsV2Request;
import software.amazon.awssdk.services.s3.model.ListObjectsV2Response;
import software.amazon.awssdk.services.s3.model.S3Exception;
import software.amazon.awssdk.services.s3.model.S3Object;

/** The objects below a prefix. Thread-safe. */
final class S3ObjectSource implements ObjectSource {
    private static final Pattern MD5 = Pattern.compile("[0-9a-f]{32}");
    private static final int MOST_OBJECTS = 1_000_000;

    private final StorageContext context;
    private final S3Location location;
    private final S3Session session;

    S3ObjectSource(StorageContext context, S3Location location, S3Session session) {
        this.context = context;
        this.location = location;
        this.session = session;
    }

    @Override
    public int maxReads() {
        return context.settings().count("S3_MAX_FILE_CONCURRENCY", Integer.MAX_VALUE);
    }

    @Override
    public Listing list() {
        List<ObjectEntry> items = new ArrayList<>();
        ServingException refused = null;
        try {
            pages(items);
        } catch (ServingException e) {
            if (e.code() != ErrorCode.PERMISSION_DENIED || !location.canBeObject()) {
                throw e;
            }
            // Credentials may permit reading an object but not listing the bucket.
            refused = e;
        }
        boolean files = items.stream()
                .anyMatch(item -> !item.path().isEmpty() && !item.path().endsWith("/"));
        if (!files && location.canBeObject()) {
            ObjectEntry object = object(refused);
            if (object != null) {
                items.clear();
                items.add(object);
            }
        }
        return new Listing(
                "s3 " + session.place() + " " + location.bucket() + "/" + location.prefix(), items, Shape.FILES);
    }

    private void pages(List<ObjectEntry> items) {
        String directory = location.directory();
        String token = null;
        do {
            ListObjectsV2Request request = ListObjectsV2Request.builder()
                    .bucket(location.bucket())
                    .prefix(directory)
                    .continuationToken(token)
                    .build();
            ListObjectsV2Response page =
                    session.call(context.shownUri(), context.cancel(), s3 -> s3.listObjectsV2(request));
            for (S3Object object : page.contents()) {
                items.add(entry(
                        object.key(),
                        object.key().substring(directory.length()),
                        object.size() == null ? -1 : object.size(),
                        object.eTag(),
                        object.lastModified()));
            }
            token = Boolean.TRUE.equals(page.isTruncated()) ? page.nextContinuationToken() : null;
        } while (token != null && items.size() < MOST_OBJECTS);
    }

    /** The object whose key is the whole prefix, or null. */
    private @Nullable ObjectEntry object(@Nullable ServingException refused) {
        String key = location.prefix();
        HeadObjectResponse head;
        try {
            head = session.attempt(
                    location.shown(key),
                    context.cancel(),
                    s3 -> s3.headObject(r -> r.bucket(location.bucket()).key(key)));
        } catch (S3Exception e) {
            if (refused != null) {
                throw refused;
            }
            if (e.statusCode() == 404 || e.statusCode() == 403) {
                return null;
            }
            throw session.failed(location.shown(key), e);
        }
        Long length = head.contentLength();
        return entry(
                key,
                key.substring(key.lastIndexOf('/') + 1),
                length == null ? -1 : length,
                head.eTag(),
                head.lastModified());
    }

    private ObjectEntry entry(String key, String path, long size, @Nullable String tag, @Nullable Instant modified) {
        String bare = tag == null ? "" : tag.replace("\"", "").toLowerCase(Locale.ROOT);
        String version = !bare.isEmpty() ? bare : modified == null ? "" : modified.toString();
        Checksum checksum = MD5.matcher(bare).matches() ? new Checksum(ChecksumAlgorithm.TAG_MD5, bare) : null;
        return new ObjectEntry(
                path, size, version, checksum, true, (from, to, cancel) -> read(key, size, tag, from, to, cancel));
    }

    private ObjectStream read(String key, long size, @Nullable String tag, long from, long to, CancellationToken cancel)
            throws IOException {
        String what = location.shown(key);
        boolean whole = from == 0 && to < 0;
        GetObjectRequest request = GetObjectRequest.builder()
                .bucket(location.bucket())
                .key(key)
                .ifMatch(tag)
                .checksumMode(session.validating() ? ChecksumMode.ENABLED : null)
                .range(whole ? null : "bytes=" + from + "-" + (to < 0 ? "" : String.valueOf(to - 1)))
                .build();
        ResponseInputStream<GetObjectResponse> in;
        try {
            in = session.attempt(what, cancel, s3 -> s3.getObject(request));
        } catch (S3Exception e) {
            // The condition failed, the range is beyond the end, or the listed object is gone: it has changed.
            int status = e.statusCode();
            if (status == 412 || status == 416 || status == 404) {
                throw new ObjectChangedException(what);
            }
            throw session.failed(what, e);
        }
        try {
            check(in.response(), what, size, from, to);
        } catch (IOException | RuntimeException e) {
            in.abort();
            throw e;
        }
        return new S3ObjectStream(in, what);
    }

    private static void check(GetObjectResponse response, String what, long size, long from, long to)
            throws IOException {
        boolean whole = from == 0 && to < 0;
        String range = response.contentRange();
        if (!whole && range == null) {
            throw new RangesIgnoredException();
        }
        if (range != null && size >= 0 && !range.endsWith("/" + size) && !range.endsWith("/*")) {
            throw new ObjectChangedException(what);
        }
        Long length = response.contentLength();
        long end = to < 0 ? size : to;
        if (length != null && end >= 0 && length != end - from) {
            if (whole) {
                throw new ObjectChangedException(what);
            }
            throw new IOException("the answer has " + length + " bytes instead of " + (end - from));
        }
    }

    @Override
    public void close() {
        session.close();
    }
}
