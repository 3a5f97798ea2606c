// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.provider;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.credentials.AwsCredentialsProvider;
import io.nereid.storage.credentials.SigV4Signer;
import io.nereid.storage.credentials.TokenCache;
import io.nereid.storage.http.HttpCall;
import io.nereid.storage.http.HttpObject;
import io.nereid.storage.http.HttpSession;
import io.nereid.storage.http.XmlParser;
import io.nereid.storage.object.ContentDigests;
import io.nereid.storage.object.ListingUtil;
import io.nereid.storage.object.ObjectPaths;
import io.nereid.storage.spi.Checksum;
import io.nereid.storage.spi.ChecksumAlgorithm;
import io.nereid.storage.spi.ObjectEntry;
import io.nereid.storage.spi.ObjectSource;
import io.nereid.storage.spi.StorageSettings;
import io.nereid.storage.spi.StorageUri;
import io.nereid.storage.spi.UploadTarget;
import java.io.IOException;
import java.net.URI;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.w3c.dom.Element;

/** {@code s3://bucket/prefix}: AWS S3 and compatible stores. Thread-safe. */
public final class S3Source implements ObjectSource, UploadTarget {
    private static final byte[] NOTHING = {};
    private static final Pattern MD5 = Pattern.compile("[0-9a-f]{32}");
    private static final Pattern HOST_LABEL = Pattern.compile("[a-z0-9-]{3,63}");

    private final String uri;
    private final StorageSettings settings;
    private final HttpSession session;
    private final TokenCache tokens;
    private final String bucket;
    private final String prefix;
    private final AwsCredentialsProvider keys;
    private final @Nullable String custom;
    private volatile String region;

    S3Source(String uri, StorageSettings settings, HttpSession session, TokenCache tokens) {
        this.uri = uri;
        this.settings = settings;
        this.session = session;
        this.tokens = tokens;
        String rest = uri.substring("s3://".length());
        int slash = rest.indexOf('/');
        this.bucket = slash < 0 ? rest : rest.substring(0, slash);
        this.prefix = slash < 0 ? "" : rest.substring(slash + 1);
        this.keys = new AwsCredentialsProvider(settings, session, tokens);
        this.region = settings.get("AWS_REGION") != null && settings.get("AWS_DEFAULT_REGION") == null
                ? settings.get("AWS_REGION", "us-east-1")
                : settings.get("AWS_DEFAULT_REGION", "us-east-1");
        this.custom = endpoint(settings);
    }

    private static @Nullable String endpoint(StorageSettings settings) {
        String url = settings.first("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");
        if (url == null) {
            String host = settings.get("S3_ENDPOINT");
            if (host == null) {
                return null;
            }
            url = host.contains("://") ? host : (settings.flag("S3_USE_HTTPS", true) ? "https://" : "http://") + host;
        }
        URI parsed;
        try {
            parsed = new URI(url);
        } catch (java.net.URISyntaxException e) {
            throw badEndpoint();
        }
        if (parsed.getHost() == null || !("http".equals(parsed.getScheme()) || "https".equals(parsed.getScheme()))) {
            throw badEndpoint();
        }
        boolean aws = parsed.getHost().equals("s3.amazonaws.com");
        return aws ? null : url.endsWith("/") ? url.substring(0, url.length() - 1) : url;
    }

    private static ServingException badEndpoint() {
        return ServingException.invalidArgument(
                "the endpoint of S3 is not an http or https URL", "set AWS_ENDPOINT_URL as in https://host:port");
    }

    /** The root of the bucket, without a slash at the end. */
    public String root() {
        boolean label = HOST_LABEL.matcher(bucket).matches();
        if (custom != null) {
            boolean virtual = settings.flag("S3_USER_VIRTUAL_BUCKET", settings.flag("S3_USE_VIRTUAL_BUCKET", false));
            if (!virtual) {
                return custom + "/" + HttpCall.encode(bucket, false);
            }
            int host = custom.indexOf("://") + 3;
            return custom.substring(0, host) + bucket + "." + custom.substring(host);
        }
        if (settings.flag("S3_USE_ACCELERATE", false)) {
            return "https://" + bucket + ".s3-accelerate.amazonaws.com";
        }
        String suffix = region.startsWith("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com";
        String host = (settings.flag("AWS_USE_FIPS_ENDPOINT", false) ? "s3-fips." : "s3.")
                + (settings.flag("AWS_USE_DUALSTACK_ENDPOINT", false) ? "dualstack." : "")
                + region
                + suffix;
        return label ? "https://" + bucket + "." + host : "https://" + host + "/" + HttpCall.encode(bucket, false);
    }

    private HttpCall call(String method, String key, Map<String, String> query, Map<String, String> more) {
        return call(method, key, query, more, NOTHING);
    }

    private HttpCall call(String method, String key, Map<String, String> query, Map<String, String> more, byte[] body) {
        StringBuilder url = new StringBuilder(root()).append('/').append(HttpCall.encode(key, true));
        String separator = "?";
        for (Map.Entry<String, String> parameter : query.entrySet()) {
            url.append(separator)
                    .append(HttpCall.encode(parameter.getKey(), false))
                    .append('=')
                    .append(HttpCall.encode(parameter.getValue(), false));
            separator = "&";
        }
        URI target = URI.create(url.toString());
        SigV4Signer.Key signer = keys.key(region);
        Map<String, String> headers = signer == null
                ? more
                : SigV4Signer.sign(
                        signer,
                        region,
                        "s3",
                        method,
                        target,
                        more,
                        ContentDigests.sha256(body),
                        Instant.ofEpochMilli(tokens.millis()));
        return new HttpCall(method, target, headers, body);
    }

    @Override
    public void put(String key, String type, byte[] bytes) {
        String name = UploadTarget.below(prefix, key);
        HttpSession.Answer answer = send(name, type, bytes);
        String other = answer.header("x-amz-bucket-region");
        if (!answer.ok() && custom == null && !other.isEmpty() && !other.equals(region)) {
            region = other;
            answer = send(name, type, bytes);
        }
        if (!answer.ok()) {
            if (answer.status() == 400 && XmlParser.code(answer.body()).equals("RequestTimeout")) {
                throw session.failed(shown(name), 408, "RequestTimeout", null);
            }
            throw session.rejected(shown(name), answer);
        }
    }

    private HttpSession.Answer send(String name, String type, byte[] bytes) {
        return session.send(shown(name), () -> call("PUT", name, Map.of(), Map.of("Content-Type", type), bytes));
    }

    @Override
    public int maxReads() {
        return settings.count("S3_MAX_FILE_CONCURRENCY", Integer.MAX_VALUE);
    }

    @Override
    public Listing list() {
        List<ObjectEntry> items = new ArrayList<>();
        String directory = prefix.isEmpty() || prefix.endsWith("/") ? prefix : prefix + "/";
        ServingException refused = null;
        try {
            pages(directory, items);
        } catch (ServingException e) {
            if (e.code() != ErrorCode.PERMISSION_DENIED || prefix.isEmpty() || prefix.endsWith("/")) {
                throw e;
            }
            // Credentials may permit reading an object but not listing the bucket.
            refused = e;
        }
        boolean files = items.stream()
                .anyMatch(item -> !item.path().isEmpty() && !item.path().endsWith("/"));
        if (!files && !prefix.isEmpty() && !prefix.endsWith("/")) {
            HttpSession.Answer answer = session.send(shown(prefix), () -> call("HEAD", prefix, Map.of(), Map.of()));
            if (answer.ok()) {
                items.clear();
                items.add(item(
                        prefix,
                        ObjectPaths.last(prefix),
                        answer.headers().firstValueAsLong("Content-Length").orElse(-1),
                        answer.header("ETag"),
                        answer.header("Last-Modified")));
            } else if (refused != null) {
                throw refused;
            } else if (answer.status() != 404 && answer.status() != 403) {
                throw session.failed(shown(prefix), answer);
            }
        }
        return new Listing("s3 " + root() + "/" + prefix, items, Shape.FILES);
    }

    private String shown(String key) {
        return "s3://" + bucket + "/" + key;
    }

    private void pages(String directory, List<ObjectEntry> items) {
        String token = "";
        int most = 1_000_000;
        do {
            Map<String, String> query = new LinkedHashMap<>();
            if (!token.isEmpty()) {
                query.put("continuation-token", token);
            }
            query.put("encoding-type", "url");
            query.put("list-type", "2");
            query.put("prefix", directory);
            Element page = page(query);
            boolean encoded = XmlParser.text(page, "EncodingType").equals("url");
            for (Element content : XmlParser.children(page, "Contents")) {
                String raw = XmlParser.text(content, "Key");
                String key = encoded ? java.net.URLDecoder.decode(raw, java.nio.charset.StandardCharsets.UTF_8) : raw;
                String below = ListingUtil.below(key, prefix);
                if (below != null) {
                    items.add(item(
                            key,
                            below,
                            number(XmlParser.text(content, "Size")),
                            XmlParser.text(content, "ETag"),
                            XmlParser.text(content, "LastModified")));
                }
            }
            token = XmlParser.text(page, "IsTruncated").equals("true")
                    ? XmlParser.text(page, "NextContinuationToken")
                    : "";
        } while (!token.isEmpty() && items.size() < most);
    }

    private Element page(Map<String, String> query) {
        String what = StorageUri.shown(uri);
        HttpSession.Answer answer = session.send(what, () -> call("GET", "", query, Map.of()));
        String other = answer.header("x-amz-bucket-region");
        if (!answer.ok() && custom == null && !other.isEmpty() && !other.equals(region)) {
            region = other;
            answer = session.send(what, () -> call("GET", "", query, Map.of()));
        }
        if (!answer.ok()) {
            boolean anonymous = keys.key(region) == null;
            if (anonymous && answer.status() == 403) {
                throw session.failed(
                        what,
                        403,
                        XmlParser.code(answer.body()),
                        "no credentials were given; give a secret with AWS keys");
            }
            throw session.failed(what, answer);
        }
        try {
            return XmlParser.root(answer.body());
        } catch (IOException e) {
            throw session.unreachable(what, e);
        }
    }

    private static long number(String text) {
        try {
            return Long.parseLong(text);
        } catch (NumberFormatException e) {
            return -1;
        }
    }

    private ObjectEntry item(String key, String path, long size, String tag, String modified) {
        String bare = tag.replace("\"", "").toLowerCase(Locale.ROOT);
        String quoted = tag.isEmpty() || tag.startsWith("\"") ? tag : "\"" + tag + "\"";
        Checksum checksum = MD5.matcher(bare).matches() ? new Checksum(ChecksumAlgorithm.TAG_MD5, bare) : null;
        Map<String, String> match = quoted.isEmpty() ? Map.of() : Map.of("If-Match", quoted);
        return new HttpObject(
                        path,
                        size,
                        tag.isEmpty() ? modified : bare,
                        null,
                        checksum,
                        HttpObject.Ranges.HEADER,
                        (from, to) -> call("GET", key, Map.of(), match).range(from, to))
                .entry(session, StorageUri.shown(uri));
    }
}
