// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.provider;

import io.nereid.base.ServingException;
import io.nereid.storage.credentials.TokenCache;
import io.nereid.storage.http.HttpObject;
import io.nereid.storage.http.HttpSession;
import io.nereid.storage.http.XmlParser;
import io.nereid.storage.object.ObjectPaths;
import io.nereid.storage.spi.ChecksumAlgorithm;
import io.nereid.storage.spi.ObjectEntry;
import io.nereid.storage.spi.ObjectSource;
import io.nereid.storage.spi.StorageSettings;
import io.nereid.storage.spi.StorageUri;
import java.io.IOException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.w3c.dom.Element;

/**
 * {@code https://account.file.core.windows.net/share/path}: a file share of Azure Files, by its REST API. Thread-safe.
 *
 * <p>Source of the requests: "File service REST API" of Azure's documentation: List Directories and Files, Get File, Get
 * File Properties.
 */
final class AzureFileSource implements ObjectSource {
    private static final byte[] NOTHING = {};
    private static final int DEPTH = 64;
    /** Tokens are accepted from this version on, with an intent: the caller's role replaces permissions of files. */
    private static final Map<String, String> COMMON =
            Map.of("x-ms-version", "2022-11-02", "x-ms-file-request-intent", "backup");

    private final String uri;
    private final StorageSettings settings;
    private final HttpSession session;
    private final AzureRequests requests;
    private final String share;
    private final String top;

    AzureFileSource(String uri, StorageSettings settings, HttpSession session, TokenCache tokens) {
        this.uri = uri;
        this.settings = settings;
        this.session = session;
        this.requests = new AzureRequests(uri, settings, session, tokens, "AZURE_STORAGE_FILE_ENDPOINT", COMMON);
        String path = requests.path();
        int slash = path.indexOf('/');
        this.share = slash < 0 ? path : path.substring(0, slash);
        this.top = slash < 0 ? "" : ObjectPaths.safe(path.substring(slash + 1), StorageUri.shown(uri));
    }

    private String full(String below) {
        String path = top.isEmpty() || below.isEmpty() ? top + below : top + "/" + below;
        return path.isEmpty() ? share : share + "/" + path;
    }

    @Override
    public int maxReads() {
        int files = settings.count("AZURE_MAX_FILE_CONCURRENCY", Integer.MAX_VALUE);
        int chunks = settings.count("AZURE_MAX_CHUNK_CONCURRENCY", Integer.MAX_VALUE);
        return (int) Math.min(Integer.MAX_VALUE, (long) files * chunks);
    }

    @Override
    public Listing list() {
        String what = StorageUri.shown(uri);
        List<ObjectEntry> items = new ArrayList<>();
        HttpSession.Answer file = top.isEmpty()
                ? null
                : session.send(what, () -> requests.call("HEAD", full(""), Map.of(), Map.of(), NOTHING));
        if (file != null && file.ok()) {
            items.add(item(
                    "",
                    ObjectPaths.last(top),
                    file.headers().firstValueAsLong("Content-Length").orElse(-1),
                    file.header("ETag"),
                    file.header("Content-MD5")));
        } else if (file != null && file.status() != 404 && file.status() != 409) {
            // 409 is a mismatch of types: the path is a directory.
            throw session.failed(what, file);
        } else {
            directories(items);
        }
        return new Listing("azure-files " + requests.root() + "/" + full(""), items, Shape.FILES);
    }

    private void directories(List<ObjectEntry> items) {
        Deque<String> open = new ArrayDeque<>(List.of(""));
        while (!open.isEmpty()) {
            String directory = open.remove();
            if (directory.chars().filter(c -> c == '/').count() > DEPTH) {
                throw ServingException.invalidArgument(
                        StorageUri.shown(uri) + " is deeper than " + DEPTH + " directories");
            }
            pages(directory, open, items);
        }
    }

    private void pages(String directory, Deque<String> open, List<ObjectEntry> items) {
        String what = StorageUri.shown(uri);
        String marker = "";
        do {
            Map<String, String> query = new LinkedHashMap<>();
            query.put("restype", "directory");
            query.put("comp", "list");
            query.put("include", "ETag,Timestamps");
            if (!marker.isEmpty()) {
                query.put("marker", marker);
            }
            HttpSession.Answer answer = session.send(
                    what,
                    () -> requests.call(
                            "GET", full(directory), query, Map.of("x-ms-file-extended-info", "true"), NOTHING));
            if (answer.status() == 404 && directory.isEmpty() && !top.isEmpty()) {
                // Neither a file nor a directory: the caller says that nothing was found.
                return;
            }
            if (!answer.ok()) {
                throw session.failed(what, answer);
            }
            try {
                Element page = XmlParser.root(answer.body());
                Element entries = XmlParser.child(page, "Entries");
                if (entries != null) {
                    for (Element child : XmlParser.children(entries, "Directory")) {
                        open.add(below(directory, child));
                    }
                    for (Element child : XmlParser.children(entries, "File")) {
                        Element properties = XmlParser.child(child, "Properties");
                        String path = below(directory, child);
                        items.add(item(
                                path,
                                path,
                                Long.parseLong("0" + XmlParser.text(properties, "Content-Length")),
                                XmlParser.text(properties, "Etag"),
                                ""));
                    }
                }
                marker = XmlParser.text(page, "NextMarker");
            } catch (IOException e) {
                throw session.unreachable(what, e);
            }
        } while (!marker.isEmpty());
    }

    private static String below(String directory, Element child) {
        Element named = XmlParser.child(child, "Name");
        String raw = named == null ? "" : named.getTextContent();
        String name = named != null && named.getAttribute("Encoded").equals("true")
                ? URLDecoder.decode(raw.replace("+", "%2B"), StandardCharsets.UTF_8)
                : raw;
        return directory.isEmpty() ? name : directory + "/" + name;
    }

    private ObjectEntry item(String below, String path, long size, String tag, String md5) {
        String bare = tag.replace("\"", "");
        return new HttpObject(
                        path,
                        size,
                        bare,
                        bare.isEmpty() ? null : "\"" + bare + "\"",
                        md5.isEmpty() ? null : HttpSource.base64(ChecksumAlgorithm.MD5, md5),
                        HttpObject.Ranges.HEADER,
                        (from, to) -> {
                            Map<String, String> more = from > 0 || to >= 0
                                    ? Map.of("Range", "bytes=" + from + "-" + (to < 0 ? "" : String.valueOf(to - 1)))
                                    : Map.of();
                            return requests.call("GET", full(below), Map.of(), more, NOTHING);
                        })
                .entry(session, StorageUri.shown(uri));
    }
}
