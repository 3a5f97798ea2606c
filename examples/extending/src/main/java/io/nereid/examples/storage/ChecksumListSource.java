// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.examples.storage;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.http.HttpCall;
import io.nereid.storage.http.HttpSession;
import io.nereid.storage.object.ContentDigests;
import io.nereid.storage.object.ObjectEntry;
import io.nereid.storage.object.ObjectSource;
import io.nereid.storage.request.StorageSettings;
import io.nereid.storage.request.StorageUris;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * {@code sums+https://host/directory}: the files of a web server's directory that its {@code SHA256SUMS} lists, in the
 * format of {@code sha256sum}. The setting {@code SUMS_TOKEN} is sent as a bearer token. Thread-safe.
 */
public final class ChecksumListSource implements ObjectSource {
    private static final String PREFIX = "sums+";
    private static final String LIST = "SHA256SUMS";
    private static final Pattern LINE = Pattern.compile("([0-9a-f]{64}) [ *](.+)");

    private final String uri;
    private final HttpSession session;
    private final URI directory;
    private final Map<String, String> headers;

    /**
     * A source for one fetch.
     *
     * @param uri the URI of the model
     * @param settings credentials of the request and of the environment
     * @param session sends the requests
     */
    public ChecksumListSource(String uri, StorageSettings settings, HttpSession session) {
        this.uri = uri;
        this.session = session;
        this.directory = StorageUris.parse(uri.substring(PREFIX.length()) + (uri.endsWith("/") ? "" : "/"));
        String token = settings.get("SUMS_TOKEN");
        this.headers = token == null ? Map.of() : Map.of("Authorization", "Bearer " + token);
    }

    @Override
    public Listing list() {
        HttpSession.Answer answer = session.send(StorageUris.shown(uri), () -> HttpCall.get(target(LIST), headers));
        if (!answer.ok()) {
            throw session.failed(StorageUris.shown(uri), answer);
        }
        List<ObjectEntry> entries = new ArrayList<>();
        for (String line : answer.text().lines().toList()) {
            Matcher matcher = LINE.matcher(line);
            if (!matcher.matches()) {
                throw ServingException.of(
                        ErrorCode.FAILED_PRECONDITION,
                        StorageUris.shown(uri) + " has a " + LIST + " with the line '" + line
                                + "' (expected: a SHA-256, two spaces and a path)",
                        "write it again with sha256sum");
            }
            entries.add(entry(matcher.group(1), matcher.group(2)));
        }
        return new Listing("sums " + directory, entries, Shape.FILES);
    }

    private ObjectEntry entry(String sha256, String path) {
        return new ObjectEntry(
                path,
                -1, // the list has no sizes
                sha256, // the version: equal content needs no second download
                null,
                new ContentDigests.Checksum(ContentDigests.Algorithm.SHA256, sha256),
                ObjectEntry.Ranges.NONE,
                (from, to) -> HttpCall.get(target(path), headers));
    }

    private URI target(String path) {
        return directory.resolve(HttpCall.encode(path, true));
    }
}
