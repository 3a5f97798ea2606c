// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.console;

import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.ResponseBody;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.zip.GZIPOutputStream;
import org.jspecify.annotations.Nullable;

/**
 * The files of the page: its own, and the libraries from the WebJars on the class path. A file is read and compressed on
 * its first request, and then served from memory; the whole page is below 300 kB compressed. Thread-safe.
 */
final class ConsoleAssets {
    /** The files of libraries, by their path in the page; {@code directives/…} of lit-html import each other by it. */
    private static final Map<String, String> LIBRARIES = Map.ofEntries(
            lit("lit-html.js"),
            lit("directive.js"),
            lit("directive-helpers.js"),
            lit("directives/repeat.js"),
            Map.entry("lib/uplot/uPlot.esm.js", "uplot/1.6.30/dist/uPlot.esm.js"),
            Map.entry("lib/uplot/uPlot.min.css", "uplot/1.6.30/dist/uPlot.min.css"));

    private static final Map<String, String> TYPES = Map.of(
            "html", "text/html; charset=utf-8",
            "js", "text/javascript; charset=utf-8",
            "css", "text/css; charset=utf-8",
            "svg", "image/svg+xml");

    /** Only files of this server, no inline scripts or styles, and no other page around it. */
    private static final String CONTENT_SECURITY_POLICY = "default-src 'none'; script-src 'self'; style-src 'self';"
            + " img-src 'self' data: blob:; connect-src 'self'; form-action 'self'; base-uri 'none';"
            + " frame-ancestors 'none'";

    private static final String INDEX = "index.html";

    /**
     * A file in memory.
     *
     * @param gzip null where compression does not pay
     */
    private record Asset(String type, byte[] bytes, byte @Nullable [] gzip, String tag) {}

    private final Map<String, Asset> loaded = new ConcurrentHashMap<>();

    private static Map.Entry<String, String> lit(String file) {
        return Map.entry("lib/lit-html/" + file, "lit-html/3.3.2/" + file);
    }

    /**
     * Replies with a file.
     *
     * @param path below {@code /console/}; empty for the page
     */
    void reply(HttpExchange x, String path) {
        Asset asset = asset(path.isEmpty() ? INDEX : path);
        if (asset == null) {
            x.reply(HttpReply.error(404, "the console has no file '" + path + "'"));
            return;
        }
        String[] headers = headers(asset, false);
        if (asset.tag.equals(x.header("if-none-match"))) {
            x.reply(new HttpReply(304, "", headers, new ResponseBody(new byte[0], 0)));
            return;
        }
        String accepted = x.header("accept-encoding");
        byte[] gzip = asset.gzip;
        if (gzip != null && accepted != null && accepted.contains("gzip")) {
            x.reply(new HttpReply(200, asset.type, headers(asset, true), new ResponseBody(gzip, gzip.length)));
            return;
        }
        x.reply(new HttpReply(200, asset.type, headers, new ResponseBody(asset.bytes, asset.bytes.length)));
    }

    private static String[] headers(Asset asset, boolean compressed) {
        String[] always = {
            "etag", asset.tag,
            "cache-control", "no-cache",
            "vary", "accept-encoding",
            "content-security-policy", CONTENT_SECURITY_POLICY,
            "referrer-policy", "no-referrer",
            "cross-origin-opener-policy", "same-origin"
        };
        if (!compressed) {
            return always;
        }
        String[] all = java.util.Arrays.copyOf(always, always.length + 2);
        all[always.length] = "content-encoding";
        all[always.length + 1] = "gzip";
        return all;
    }

    private @Nullable Asset asset(String path) {
        Asset known = loaded.get(path);
        if (known != null) {
            return known;
        }
        String type = TYPES.get(path.substring(path.lastIndexOf('.') + 1));
        String library = LIBRARIES.get(path);
        // The path comes from a client: only plain relative names reach the class path.
        if (type == null || !path.matches("[a-zA-Z0-9-]+(/[a-zA-Z0-9-]+)*(\\.[a-zA-Z0-9-]+)+")) {
            return null;
        }
        String resource = library == null ? path : "/META-INF/resources/webjars/" + library;
        try (InputStream in = ConsoleAssets.class.getResourceAsStream(resource)) {
            if (in == null) {
                return null;
            }
            Asset read = read(in.readAllBytes(), type);
            loaded.put(path, read);
            return read;
        } catch (IOException e) {
            throw new UncheckedIOException("the console's file " + path + " cannot be read", e);
        }
    }

    private static Asset read(byte[] bytes, String type) throws IOException {
        ByteArrayOutputStream packed = new ByteArrayOutputStream(bytes.length / 2);
        try (GZIPOutputStream gzip = new GZIPOutputStream(packed)) {
            gzip.write(bytes);
        }
        byte[] compressed = packed.toByteArray();
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(bytes);
            String tag = '"' + HexFormat.of().formatHex(digest, 0, 12) + '"';
            return new Asset(type, bytes, compressed.length < bytes.length ? compressed : null, tag);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java runtime has SHA-256", e);
        }
    }

    /** The size of all files as a browser gets them, in bytes: for the test that keeps it small. */
    static long transferBytes(Iterable<String> paths) {
        ConsoleAssets assets = new ConsoleAssets();
        long sum = 0;
        for (String path : paths) {
            Asset asset = assets.asset(path);
            if (asset != null) {
                byte[] gzip = asset.gzip;
                sum += gzip == null ? asset.bytes.length : gzip.length;
            }
        }
        return sum;
    }
}
