// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** {@code hf://owner/model[:revision]}, of the Hugging Face Hub: the files of one commit. */
final class HuggingFaceSource implements Source {
    private final String uri;
    private final HttpSession session;
    private final String endpoint;
    private final String model;
    private final String revision;
    private final Map<String, String> headers;

    HuggingFaceSource(String uri, Settings settings, HttpSession session) {
        this.uri = uri;
        this.session = session;
        String rest = uri.substring("hf://".length());
        int colon = rest.indexOf(':');
        this.model = colon < 0 ? rest : rest.substring(0, colon);
        this.revision = colon < 0 ? "main" : rest.substring(colon + 1);
        String url = settings.get("HF_ENDPOINT", "https://huggingface.co");
        this.endpoint = url.endsWith("/") ? url.substring(0, url.length() - 1) : url;
        String token = settings.first("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN");
        this.headers = token == null ? Map.of() : Map.of("Authorization", "Bearer " + token.trim());
    }

    @Override
    public Listing list() {
        URI target = URI.create(endpoint + "/api/models/" + HttpCall.encode(model, true) + "/revision/"
                + HttpCall.encode(revision, false) + "?blobs=true");
        HttpSession.Answer answer = session.send(Uris.shown(uri), () -> HttpCall.get(target, headers));
        if (answer.status() == 401 || answer.status() == 403 || answer.status() == 404) {
            throw session.failed(
                    Uris.shown(uri),
                    answer.status(),
                    answer.header("X-Error-Code"),
                    headers.isEmpty()
                            ? "check the name; a private or gated model needs HF_TOKEN"
                            : "check the name, and that the owner of HF_TOKEN may read the model");
        }
        if (!answer.ok()) {
            throw session.failed(Uris.shown(uri), answer);
        }
        JsonNode told = Json.read(answer.text(), "the answer of the Hub");
        String commit = told.path("sha").asText();
        if (commit.isEmpty()) {
            throw ServingException.of(
                    ErrorCode.UNAVAILABLE, Uris.shown(uri) + ": the Hub does not say which commit it has");
        }
        List<Item> items = new ArrayList<>();
        for (JsonNode file : told.path("siblings")) {
            items.add(item(file, commit));
        }
        return new Listing("hf " + endpoint + "/" + model, items, Shape.PLAIN);
    }

    private Item item(JsonNode file, String commit) {
        String name = file.path("rfilename").asText();
        String sha256 = file.path("lfs")
                .path("sha256")
                .asText(file.path("lfs").path("oid").asText());
        String blob = file.path("blobId").asText();
        Digests.Checksum checksum = null;
        if (!sha256.isEmpty()) {
            checksum = new Digests.Checksum(Digests.Algorithm.SHA256, sha256.replace("sha256:", ""));
        } else if (blob.length() == 40) {
            checksum = new Digests.Checksum(Digests.Algorithm.GIT_BLOB, blob);
        }
        URI target = URI.create(endpoint + "/" + HttpCall.encode(model, true) + "/resolve/" + commit + "/"
                + HttpCall.encode(name, true));
        // Equal content of two commits is one content: the commit is not part of the version if the content is known.
        String version = checksum == null ? commit : checksum.hex();
        long size = file.path("lfs").path("size").asLong(file.path("size").asLong(-1));
        return new Item(
                name,
                size,
                version,
                null,
                checksum,
                Item.Ranges.HEADER,
                (from, to) -> HttpCall.get(target, headers).range(from, to));
    }
}
