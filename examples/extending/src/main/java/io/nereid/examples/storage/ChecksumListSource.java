// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.examples.storage;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.spi.CancellationToken;
import io.nereid.storage.spi.Checksum;
import io.nereid.storage.spi.ChecksumAlgorithm;
import io.nereid.storage.spi.ObjectChangedException;
import io.nereid.storage.spi.ObjectEntry;
import io.nereid.storage.spi.ObjectSource;
import io.nereid.storage.spi.ObjectStream;
import io.nereid.storage.spi.RetryPolicy;
import io.nereid.storage.spi.StorageContext;
import io.nereid.storage.spi.StorageFailures;
import io.nereid.storage.spi.StoreBusyException;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** The files of one list. Thread-safe. */
final class ChecksumListSource implements ObjectSource {
    private static final String PREFIX = "sums+";
    private static final String LIST = "SHA256SUMS";
    private static final Pattern LINE = Pattern.compile("([0-9a-f]{64}) [ *](.+)");

    private final StorageContext context;
    private final StorageFailures failures;
    private final URI directory;
    private final @Nullable String token;
    private final HttpClient client;

    ChecksumListSource(StorageContext context) {
        this.context = context;
        this.failures = context.failures();
        String place = context.uri().substring(PREFIX.length());
        try {
            this.directory = new URI(place.endsWith("/") ? place : place + "/");
        } catch (URISyntaxException e) {
            throw ServingException.invalidArgument(
                    "'" + context.shownUri() + "' is not a URI: " + e.getReason(),
                    "expected sums+https://host/directory");
        }
        this.token = context.settings().get("SUMS_TOKEN");
        this.client = HttpClient.newBuilder()
                .connectTimeout(context.retries().connect())
                .build();
    }

    @Override
    public Listing list() {
        String what = context.shownUri();
        List<ObjectEntry> entries = new ArrayList<>();
        for (String line : content(what).lines().toList()) {
            Matcher matcher = LINE.matcher(line);
            if (!matcher.matches()) {
                throw ServingException.of(
                        ErrorCode.FAILED_PRECONDITION,
                        what + " has a " + LIST + " with the line '" + line
                                + "' (expected: a SHA-256, two spaces and a path)",
                        "write it again with sha256sum");
            }
            entries.add(entry(matcher.group(1), matcher.group(2)));
        }
        return new Listing("sums " + directory, entries, Shape.FILES);
    }

    private String content(String what) {
        for (int attempt = 1; ; attempt++) {
            try (InputStream body = get(LIST, what, context.cancel())) {
                return new String(body.readAllBytes(), StandardCharsets.UTF_8);
            } catch (StoreBusyException e) {
                if (attempt >= context.retries().attempts()) {
                    throw e.failure();
                }
            } catch (IOException e) {
                if (attempt >= context.retries().attempts()) {
                    throw failures.unreachable(what, e);
                }
            }
            context.cancel().pause(RetryPolicy.pauseMillis(attempt));
        }
    }

    private ObjectEntry entry(String sha256, String path) {
        return new ObjectEntry(
                path,
                -1, // the list has no sizes
                sha256, // the version: equal content needs no second download
                new Checksum(ChecksumAlgorithm.SHA256, sha256),
                false,
                (from, to, cancel) -> open(path, cancel));
    }

    private ObjectStream open(String path, CancellationToken cancel) throws IOException {
        InputStream body = get(path, context.shownUri() + " (" + path + ")", cancel);
        return new ObjectStream() {
            @Override
            public int read(byte[] buffer, int limit) throws IOException {
                return body.read(buffer, 0, limit);
            }

            @Override
            public void close() {
                try {
                    body.close();
                } catch (IOException e) {
                    // The body is discarded, so a failure to close it does not matter.
                }
            }
        };
    }

    private InputStream get(String path, String what, CancellationToken cancel) throws IOException {
        cancel.check();
        HttpRequest.Builder request = HttpRequest.newBuilder(directory.resolve(encoded(path)))
                .timeout(context.retries().read());
        if (token != null) {
            request.header("Authorization", "Bearer " + token);
        }
        HttpResponse<InputStream> response = send(request.build(), cancel);
        int status = response.statusCode();
        if (status == 200) {
            return response.body();
        }
        response.body().close();
        if (StorageFailures.isRetryable(status)) {
            throw new StoreBusyException(failures.ofStatus(what, status, "", null), 0);
        }
        if (status == 404 && !path.equals(LIST)) {
            throw new ObjectChangedException(what);
        }
        throw failures.ofStatus(what, status, "", null);
    }

    private HttpResponse<InputStream> send(HttpRequest request, CancellationToken cancel) throws IOException {
        CompletableFuture<HttpResponse<InputStream>> sent =
                client.sendAsync(request, HttpResponse.BodyHandlers.ofInputStream());
        Runnable ending = () -> sent.cancel(true);
        cancel.add(ending);
        try {
            return sent.get();
        } catch (ExecutionException e) {
            throw new IOException(String.valueOf(e.getCause()), e);
        } catch (CancellationException e) {
            throw ServingException.of(ErrorCode.CANCELLED, "the fetch was cancelled");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw ServingException.of(ErrorCode.CANCELLED, "the fetch was interrupted");
        } finally {
            cancel.remove(ending);
        }
    }

    private static String encoded(String path) {
        try {
            return new URI(null, null, "/" + path, null).getRawPath().substring(1);
        } catch (URISyntaxException e) {
            throw ServingException.invalidArgument("'" + path + "' is not a path");
        }
    }
}
