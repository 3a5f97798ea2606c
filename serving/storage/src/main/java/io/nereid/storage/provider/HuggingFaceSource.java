// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.provider;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.http.HttpCall;
import io.nereid.storage.http.HttpObject;
import io.nereid.storage.http.HttpSession;
import io.nereid.storage.request.StorageJson;
import io.nereid.storage.spi.Checksum;
import io.nereid.storage.spi.ChecksumAlgorithm;
import io.nereid.storage.spi.ObjectEntry;
import io.nereid.storage.spi.ObjectSource;
import io.nereid.storage.spi.StorageSettings;
import io.nereid.storage.spi.StorageUri;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** {@code hf://owner/model[:revision]}: the files of one commit of a model on the Hugging Face Hub. Thread-safe. */
final class HuggingFaceSource implements ObjectSource {
    private final String uri;
    private final HttpSession session;
    private final String endpoint;
    private final String model;
    private final String revision;
    private final Map<String, String> headers;

    HuggingFaceSource(String uri, StorageSettings settings, HttpSession session) {
        this.uri = uri;
        this.session = session;
        String rest = uri.substring("hf://".length());
        int colon = rest.indexOf(':');
        this.model = colon < 0 ? rest : rest.substring(0, colon);
        this.revision = colon < 0 ? "main" : rest.substring(colon + 1);
        String url = settings.get("HF_ENDPOINT", "https://huggingface.co");
        this.endpoint = url.endsWith("/") ? url.substring(0, url.length() - 1) : url;
        String token = token(settings);
        this.headers = token == null ? Map.of() : Map.of("Authorization", "Bearer " + token.trim());
    }

    private static @Nullable String token(StorageSettings settings) {
        String token = settings.first("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN");
        String file = settings.get("HF_TOKEN_PATH");
        if (token != null || file == null) {
            return token;
        }
        try {
            return Files.readString(Path.of(file));
        } catch (IOException | RuntimeException e) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "HF_TOKEN_PATH cannot be read: " + file,
                    "name a readable file with a token, or give HF_TOKEN");
        }
    }

    @Override
    public Listing list() {
        URI target = URI.create(endpoint + "/api/models/" + HttpCall.encode(model, true) + "/revision/"
                + HttpCall.encode(revision, false) + "?blobs=true");
        HttpSession.Answer answer = session.send(StorageUri.shown(uri), () -> HttpCall.get(target, headers));
        if (answer.status() == 401 || answer.status() == 403 || answer.status() == 404) {
            throw session.failed(
                    StorageUri.shown(uri),
                    answer.status(),
                    answer.header("X-Error-Code"),
                    headers.isEmpty()
                            ? "check the name; a private or gated model needs HF_TOKEN"
                            : "check the name, and that the owner of HF_TOKEN may read the model");
        }
        if (!answer.ok()) {
            throw session.failed(StorageUri.shown(uri), answer);
        }
        JsonNode revisionInfo = StorageJson.read(answer.text(), "the answer of the Hub");
        String commit = revisionInfo.path("sha").asText();
        if (commit.isEmpty()) {
            throw ServingException.of(
                    ErrorCode.UNAVAILABLE, StorageUri.shown(uri) + ": the answer of the Hub has no commit");
        }
        List<ObjectEntry> items = new ArrayList<>();
        for (JsonNode file : revisionInfo.path("siblings")) {
            items.add(item(file, commit));
        }
        return new Listing("hf " + endpoint + "/" + model, items, Shape.PLAIN);
    }

    private ObjectEntry item(JsonNode file, String commit) {
        String name = file.path("rfilename").asText();
        String sha256 = file.path("lfs")
                .path("sha256")
                .asText(file.path("lfs").path("oid").asText());
        String blob = file.path("blobId").asText();
        Checksum checksum = null;
        if (!sha256.isEmpty()) {
            checksum = new Checksum(ChecksumAlgorithm.SHA256, sha256.replace("sha256:", ""));
        } else if (blob.length() == 40) {
            checksum = new Checksum(ChecksumAlgorithm.GIT_BLOB, blob);
        }
        URI target = URI.create(endpoint + "/" + HttpCall.encode(model, true) + "/resolve/" + commit + "/"
                + HttpCall.encode(name, true));
        // Two commits may have equal content, so the commit is part of the version only if there is no content digest.
        String version = checksum == null ? commit : checksum.hex();
        long size = file.path("lfs").path("size").asLong(file.path("size").asLong(-1));
        return new HttpObject(
                        name,
                        size,
                        version,
                        null,
                        checksum,
                        HttpObject.Ranges.HEADER,
                        (from, to) -> HttpCall.get(target, headers).range(from, to))
                .entry(session, StorageUri.shown(uri));
    }
}
