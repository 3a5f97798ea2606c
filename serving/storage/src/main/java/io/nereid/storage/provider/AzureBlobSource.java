// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.provider;

import io.nereid.storage.credentials.TokenCache;
import io.nereid.storage.http.HttpCall;
import io.nereid.storage.http.HttpObject;
import io.nereid.storage.http.HttpSession;
import io.nereid.storage.http.XmlParser;
import io.nereid.storage.object.ListingUtil;
import io.nereid.storage.object.ObjectPaths;
import io.nereid.storage.spi.ChecksumAlgorithm;
import io.nereid.storage.spi.ObjectEntry;
import io.nereid.storage.spi.ObjectSource;
import io.nereid.storage.spi.StorageSettings;
import io.nereid.storage.spi.StorageUri;
import io.nereid.storage.spi.UploadTarget;
import java.io.IOException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.w3c.dom.Element;

/** {@code https://account.blob.core.windows.net/container/prefix}: Azure Blob Storage. Thread-safe. */
public final class AzureBlobSource implements ObjectSource, UploadTarget {
    private static final byte[] NOTHING = {};
    private static final String VERSION = "2021-08-06";

    private final String uri;
    private final StorageSettings settings;
    private final HttpSession session;
    private final AzureRequests requests;
    private final String container;
    private final String prefix;

    public AzureBlobSource(String uri, StorageSettings settings, HttpSession session, TokenCache tokens) {
        this.uri = uri;
        this.settings = settings;
        this.session = session;
        this.requests = new AzureRequests(
                uri, settings, session, tokens, "AZURE_STORAGE_BLOB_ENDPOINT", Map.of("x-ms-version", VERSION));
        String path = requests.path();
        int slash = path.indexOf('/');
        this.container = slash < 0 ? path : path.substring(0, slash);
        this.prefix = slash < 0 ? "" : path.substring(slash + 1);
    }

    private HttpCall call(String method, String path, Map<String, String> query, Map<String, String> more) {
        return requests.call(method, path, query, more, NOTHING);
    }

    @Override
    public void put(String key, String type, byte[] bytes) {
        String name = UploadTarget.below(prefix, key);
        String what = requests.root() + "/" + container + "/" + name;
        Map<String, String> headers = Map.of("Content-Type", type, "x-ms-blob-type", "BlockBlob");
        HttpSession.Answer answer =
                session.send(what, () -> requests.call("PUT", container + "/" + name, Map.of(), headers, bytes));
        if (!answer.ok()) {
            throw session.rejected(what, answer);
        }
    }

    @Override
    public int maxReads() {
        int files = settings.count("AZURE_MAX_FILE_CONCURRENCY", Integer.MAX_VALUE);
        int chunks = settings.count("AZURE_MAX_CHUNK_CONCURRENCY", Integer.MAX_VALUE);
        return (int) Math.min(Integer.MAX_VALUE, (long) files * chunks);
    }

    @Override
    public Listing list() {
        List<ObjectEntry> items = new ArrayList<>();
        String directory = prefix.isEmpty() || prefix.endsWith("/") ? prefix : prefix + "/";
        String marker = "";
        do {
            Map<String, String> query = new LinkedHashMap<>();
            query.put("restype", "container");
            query.put("comp", "list");
            query.put("prefix", directory);
            if (!marker.isEmpty()) {
                query.put("marker", marker);
            }
            HttpSession.Answer answer =
                    session.expect(StorageUri.shown(uri), () -> call("GET", container, query, Map.of()));
            try {
                Element page = XmlParser.root(answer.body());
                Element blobs = XmlParser.child(page, "Blobs");
                for (Element blob : blobs == null ? List.<Element>of() : XmlParser.children(blobs, "Blob")) {
                    add(blob, items);
                }
                marker = XmlParser.text(page, "NextMarker");
            } catch (IOException e) {
                throw session.unreachable(StorageUri.shown(uri), e);
            }
        } while (!marker.isEmpty());
        boolean files = items.stream()
                .anyMatch(item -> !item.path().isEmpty() && !item.path().endsWith("/"));
        if (!files && !prefix.isEmpty() && !prefix.endsWith("/")) {
            HttpSession.Answer answer = session.send(
                    StorageUri.shown(uri), () -> call("HEAD", container + "/" + prefix, Map.of(), Map.of()));
            if (answer.ok()) {
                items.clear();
                items.add(item(
                        prefix,
                        ObjectPaths.last(prefix),
                        answer.headers().firstValueAsLong("Content-Length").orElse(-1),
                        answer.header("ETag"),
                        answer.header("Content-MD5")));
            } else if (answer.status() != 404) {
                throw session.failed(StorageUri.shown(uri), answer);
            }
        }
        return new Listing("azure " + requests.root() + "/" + container + "/" + prefix, items, Shape.FILES);
    }

    private void add(Element blob, List<ObjectEntry> items) {
        Element named = XmlParser.child(blob, "Name");
        Element properties = XmlParser.child(blob, "Properties");
        if (named == null || XmlParser.text(properties, "ResourceType").equals("directory")) {
            return;
        }
        String raw = named.getTextContent();
        String name = named.getAttribute("Encoded").equals("true")
                ? URLDecoder.decode(raw.replace("+", "%2B"), StandardCharsets.UTF_8)
                : raw;
        String below = ListingUtil.below(name, prefix);
        if (below != null) {
            items.add(item(
                    name,
                    below,
                    Long.parseLong("0" + XmlParser.text(properties, "Content-Length")),
                    XmlParser.text(properties, "Etag"),
                    XmlParser.text(properties, "Content-MD5")));
        }
    }

    private ObjectEntry item(String name, String path, long size, String tag, String md5) {
        String bare = tag.replace("\"", "");
        Map<String, String> match = bare.isEmpty() ? Map.of() : Map.of("If-Match", "\"" + bare + "\"");
        return new HttpObject(
                        path,
                        size,
                        bare,
                        null,
                        md5.isEmpty() ? null : HttpSource.base64(ChecksumAlgorithm.MD5, md5),
                        HttpObject.Ranges.HEADER,
                        (from, to) -> {
                            Map<String, String> more = new LinkedHashMap<>(match);
                            if (from > 0 || to >= 0) {
                                more.put("Range", "bytes=" + from + "-" + (to < 0 ? "" : String.valueOf(to - 1)));
                            }
                            return call("GET", container + "/" + name, Map.of(), more);
                        })
                .entry(session, StorageUri.shown(uri));
    }
}
