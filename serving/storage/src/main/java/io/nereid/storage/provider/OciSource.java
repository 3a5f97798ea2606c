// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.provider;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.credentials.TokenCache;
import io.nereid.storage.http.HttpCall;
import io.nereid.storage.http.HttpObject;
import io.nereid.storage.http.HttpSession;
import io.nereid.storage.object.ContentDigests;
import io.nereid.storage.request.StorageJson;
import io.nereid.storage.request.StorageUris;
import io.nereid.storage.spi.Checksum;
import io.nereid.storage.spi.ChecksumAlgorithm;
import io.nereid.storage.spi.ObjectEntry;
import io.nereid.storage.spi.ObjectSource;
import io.nereid.storage.spi.StorageSettings;
import io.nereid.storage.spi.StorageUri;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** {@code oci://registry/name[:tag][@digest]}: the files below /models in an OCI image (a "modelcar"). Thread-safe. */
final class OciSource implements ObjectSource {
    private static final Logger LOG = LoggerFactory.getLogger(OciSource.class);
    private static final String INDEX = "application/vnd.oci.image.index.v1+json";
    private static final String LIST = "application/vnd.docker.distribution.manifest.list.v2+json";
    private static final String ACCEPT = "application/vnd.oci.image.manifest.v1+json, "
            + "application/vnd.docker.distribution.manifest.v2+json, " + INDEX + ", " + LIST;
    private static final Pattern PARAMETER = Pattern.compile("(\\w+)=\"([^\"]*)\"");
    private static final Pattern DIGEST = Pattern.compile("sha256:[0-9a-f]{64}");

    private final String uri;
    private final StorageSettings settings;
    private final HttpSession session;
    private final TokenCache tokens;
    private final String registry;
    private final String name;
    private final String reference;
    private final String root;
    private volatile @Nullable String challenge;

    OciSource(String uri, StorageSettings settings, HttpSession session, TokenCache tokens) {
        this.uri = uri;
        this.settings = settings;
        this.session = session;
        this.tokens = tokens;
        String rest = uri.substring(uri.indexOf("://") + 3);
        int slash = rest.indexOf('/');
        String first = slash < 0 ? "" : rest.substring(0, slash);
        boolean named = first.contains(".") || first.contains(":") || first.equals("localhost");
        this.registry = named ? first : "docker.io";
        String image = named ? rest.substring(slash + 1) : rest;
        int at = image.indexOf('@');
        String digest = at < 0 ? "" : image.substring(at + 1);
        image = at < 0 ? image : image.substring(0, at);
        int colon = image.lastIndexOf(':');
        String tag = colon > image.lastIndexOf('/') ? image.substring(colon + 1) : "latest";
        image = colon > image.lastIndexOf('/') ? image.substring(0, colon) : image;
        if (!image.matches("[a-z0-9._/-]+")
                || !digest.isEmpty() && !DIGEST.matcher(digest).matches()) {
            throw StorageUris.invalid(uri, "expected oci://registry/name[:tag][@sha256:digest]");
        }
        this.name = registry.equals("docker.io") && !image.contains("/") ? "library/" + image : image;
        this.reference = digest.isEmpty() ? tag : digest;
        String host = registry.equals("docker.io") ? "registry-1.docker.io" : registry;
        // Like other tools, use registries on this machine without TLS.
        boolean here = host.matches("(localhost|127\\.[0-9.]+)(:\\d+)?") && !host.endsWith(":443");
        this.root = (here ? "http://" : "https://") + host + "/v2/" + name;
    }

    private HttpCall get(String path, String accept) {
        Map<String, String> headers = new LinkedHashMap<>();
        headers.put("Accept", accept);
        String asked = challenge;
        if (asked != null) {
            headers.put("Authorization", authorization(asked));
        }
        return HttpCall.get(URI.create(root + path), headers);
    }

    private HttpSession.Answer ask(String path) {
        String what = StorageUri.shown(uri);
        HttpSession.Answer answer = session.send(what, () -> get(path, ACCEPT));
        if (answer.status() == 401 && challenge == null) {
            challenge = answer.header("WWW-Authenticate");
            answer = session.send(what, () -> get(path, ACCEPT));
        }
        if (!answer.ok()) {
            throw session.failed(what, answer);
        }
        return answer;
    }

    private String authorization(String asked) {
        String login = login();
        if (asked.regionMatches(true, 0, "Basic", 0, 5)) {
            if (login == null) {
                throw ServingException.of(
                        ErrorCode.UNAUTHENTICATED,
                        StorageUri.shown(uri) + ": the registry " + registry + " requires a user and a password",
                        "give a secret with .dockerconfigjson");
            }
            return "Basic " + login;
        }
        Map<String, String> parameters = new LinkedHashMap<>();
        Matcher matcher = PARAMETER.matcher(asked);
        while (matcher.find()) {
            parameters.put(matcher.group(1), matcher.group(2));
        }
        String realm = parameters.getOrDefault("realm", "");
        if (!asked.regionMatches(true, 0, "Bearer", 0, 6) || realm.isEmpty()) {
            throw ServingException.of(
                    ErrorCode.UNAUTHENTICATED,
                    StorageUri.shown(uri) + ": the registry requires an unknown authentication scheme");
        }
        login = loginFor(StorageUris.parse(realm), login);
        String sent = login;
        String target = realm + (realm.contains("?") ? "&" : "?") + "service="
                + HttpCall.encode(parameters.getOrDefault("service", ""), false) + "&scope="
                + HttpCall.encode(parameters.getOrDefault("scope", "repository:" + name + ":pull"), false);
        return "Bearer "
                + tokens.of(target + "\n" + sent, () -> token(StorageUris.parse(target), sent))
                        .value();
    }

    /**
     * The user and password that the registry's token service gets: the registry's own if the service is on the
     * registry's host, on a domain above or below it, or named by the operator. Another host gets what the pull secret
     * has for that host, else nothing. A registry could otherwise name any host, which would then collect
     * passwords.
     */
    private @Nullable String loginFor(URI realm, @Nullable String login) {
        String service = String.valueOf(realm.getHost()).toLowerCase(Locale.ROOT);
        String own = String.valueOf(URI.create(root).getHost()).toLowerCase(Locale.ROOT);
        boolean related = service.equals(own)
                || service.endsWith("." + own)
                || own.endsWith("." + service) && service.contains(".")
                || registry.equals("docker.io") && service.equals("auth.docker.io");
        if (login == null || related || session.names(realm)) {
            return login;
        }
        String other = login(List.of(service, "https://" + service, "https://" + service + "/"));
        if (other == null) {
            LOG.warn(
                    "the registry {} names {} as its token service, which does not get the registry's password;"
                            + " --storage-allow=https://{}/ permits it",
                    registry,
                    service,
                    service);
        }
        return other;
    }

    private TokenCache.Token token(URI target, @Nullable String login) {
        String what = "a token for " + StorageUri.shown(uri);
        if (login != null && root.startsWith("https://") && !"https".equals(target.getScheme())) {
            throw ServingException.of(
                    ErrorCode.UNAUTHENTICATED, what + ": the registry requests the password without TLS");
        }
        Map<String, String> headers = login == null ? Map.of() : Map.of("Authorization", "Basic " + login);
        HttpSession.Answer answer = session.expect(what, () -> HttpCall.get(target, headers));
        JsonNode given = StorageJson.read(answer.text(), what);
        String token = given.path("token").asText(given.path("access_token").asText());
        return new TokenCache.Token(
                token, tokens.millis() + Math.max(60, given.path("expires_in").asLong(60)) * 1000);
    }

    /** User and password for the registry in base64, from the pull secret or Docker's configuration file, or null. */
    private @Nullable String login() {
        return login(
                registry.equals("docker.io")
                        ? List.of("https://index.docker.io/v1/", "index.docker.io", "docker.io", "registry-1.docker.io")
                        : List.of(registry, "https://" + registry, "https://" + registry + "/"));
    }

    private @Nullable String login(List<String> keys) {
        String json = settings.text(".dockerconfigjson", "{");
        if (json == null) {
            String directory = settings.get("DOCKER_CONFIG");
            String home = settings.get("HOME");
            Path file = directory != null
                    ? Path.of(directory, "config.json")
                    : home != null ? Path.of(home, ".docker", "config.json") : null;
            try {
                json = file != null && Files.isReadable(file) ? Files.readString(file) : null;
            } catch (IOException e) {
                json = null;
            }
        }
        if (json == null) {
            return null;
        }
        JsonNode auths =
                StorageJson.read(json, "storage setting .dockerconfigjson").path("auths");
        for (String key : keys) {
            JsonNode entry = auths.path(key);
            if (!entry.path("auth").asText().isEmpty()) {
                return entry.path("auth").asText();
            }
            if (!entry.path("username").asText().isEmpty()) {
                return Base64.getEncoder()
                        .encodeToString((entry.path("username").asText() + ":"
                                        + entry.path("password").asText())
                                .getBytes(StandardCharsets.UTF_8));
            }
        }
        return null;
    }

    private JsonNode manifest(String wanted) {
        HttpSession.Answer answer = ask("/manifests/" + wanted);
        if (DIGEST.matcher(wanted).matches() && !wanted.equals("sha256:" + ContentDigests.sha256(answer.body()))) {
            throw ServingException.of(
                    ErrorCode.DATA_LOSS, StorageUri.shown(uri) + ": the manifest does not have the digest " + wanted);
        }
        return StorageJson.read(answer.text(), "the manifest of " + StorageUri.shown(uri));
    }

    @Override
    public Listing list() {
        JsonNode manifest = manifest(reference);
        if (manifest.has("manifests")) {
            manifest = manifest(select(manifest));
        }
        List<ObjectEntry> items = new ArrayList<>();
        int next = 0;
        for (JsonNode layer : manifest.path("layers")) {
            items.add(layer(layer, next++));
        }
        if (items.isEmpty()) {
            throw ServingException.of(ErrorCode.FAILED_PRECONDITION, StorageUri.shown(uri) + " has no layers");
        }
        return new Listing("oci " + root, items, Shape.LAYERS);
    }

    private String select(JsonNode index) {
        String arch = switch (System.getProperty("os.arch", "")) {
            case "aarch64", "arm64" -> "arm64";
            case "amd64", "x86_64" -> "amd64";
            default -> System.getProperty("os.arch", "");
        };
        List<String> seen = new ArrayList<>();
        List<String> digests = new ArrayList<>();
        for (JsonNode candidate : index.path("manifests")) {
            JsonNode platform = candidate.path("platform");
            String os = platform.path("os").asText();
            String digest = candidate.path("digest").asText();
            if (os.equals("unknown")) {
                continue;
            }
            if (os.equals("linux") && platform.path("architecture").asText().equals(arch)) {
                return digest;
            }
            seen.add(os + "/" + platform.path("architecture").asText());
            digests.add(digest);
        }
        if (digests.size() == 1) {
            return digests.get(0);
        }
        throw ServingException.of(
                ErrorCode.FAILED_PRECONDITION,
                StorageUri.shown(uri) + " has no image for linux/" + arch + "; it has " + seen,
                "name the digest of the image to take");
    }

    private ObjectEntry layer(JsonNode layer, int index) {
        String type = layer.path("mediaType").asText();
        String digest = layer.path("digest").asText();
        String ending;
        if (type.endsWith("tar+gzip") || type.endsWith("tar.gzip")) {
            ending = ".tar.gz";
        } else if (type.endsWith(".tar") || type.endsWith("diff.tar")) {
            ending = ".tar";
        } else {
            throw ServingException.invalidArgument(
                    StorageUri.shown(uri) + " has a layer of the type '" + type + "', which is not supported",
                    "only tar and tar+gzip are; build the image with gzip compression"
                            + (type.endsWith("zstd") ? " instead of zstd" : ""));
        }
        if (!DIGEST.matcher(digest).matches()) {
            throw ServingException.invalidArgument(
                    StorageUri.shown(uri) + " has a layer with the digest '" + digest + "'; only sha256 is supported");
        }
        return new HttpObject(
                        "layer" + index + ending,
                        layer.path("size").asLong(-1),
                        digest,
                        null,
                        new Checksum(ChecksumAlgorithm.SHA256, digest.substring("sha256:".length())),
                        HttpObject.Ranges.HEADER,
                        (from, to) -> get("/blobs/" + digest, "*/*").range(from, to))
                .entry(session, StorageUri.shown(uri));
    }
}
