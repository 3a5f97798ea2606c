// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.text;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.apiserver.patch.ResourcePatcher;
import io.nereid.control.apiserver.read.ResourceSelector;
import io.nereid.fuzz.FuzzTarget;
import io.nereid.fuzz.FuzzTargets;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * A patch of a resource, or a selector; the first character chooses which. A merge patch applied twice gives the same as applied
 * once. Confined to one thread.
 */
public final class PatchTarget implements FuzzTarget {
    private static final ObjectMapper JSON = new ObjectMapper();
    private final JsonNode resource;

    public PatchTarget() {
        try {
            resource = JSON.readTree(
                    "{\"apiVersion\":\"v1\",\"kind\":\"ServiceAccount\",\"metadata\":{\"name\":\"s\","
                            + "\"labels\":{\"a\":\"b\",\"c\":\"d\"}},\"secrets\":[{\"name\":\"x\"},{\"name\":\"y\"}],\"n\":[1,2,[3]]}");
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    @Override
    public void read(byte[] input) {
        String text = new String(input, StandardCharsets.UTF_8);
        if (text.isEmpty()) {
            return;
        }
        String rest = text.substring(1);
        switch (text.charAt(0) % 5) {
            case 0 -> new ResourceSelector(ResourceKinds.SERVICE_ACCOUNT, rest, null).matches(resource);
            case 1 -> new ResourceSelector(ResourceKinds.EVENT, null, rest).matches(resource);
            case 2 -> {
                JsonNode patch = json(rest);
                if (patch != null) {
                    written(ResourcePatcher.json(resource, patch));
                }
            }
            case 3 -> {
                JsonNode patch = json(rest);
                if (patch != null) {
                    JsonNode once = ResourcePatcher.merge(resource, patch);
                    if (!ResourcePatcher.merge(once, patch).equals(once)) {
                        throw new AssertionError("the merge patch " + patch + " applied twice differs from once");
                    }
                }
            }
            default -> {
                JsonNode patch = json(rest);
                if (patch != null) {
                    written(ResourcePatcher.strategic(resource, patch));
                }
            }
        }
    }

    /** Writes a result, as the server does for its answer. */
    private static void written(JsonNode result) {
        if (result.toString().isEmpty()) {
            throw new AssertionError("a result without a text");
        }
    }

    private static JsonNode json(String text) {
        try {
            JsonNode read = JSON.readTree(text);
            return read.isMissingNode() ? null : read;
        } catch (IOException e) {
            return null;
        }
    }

    @Override
    public List<byte[]> seeds() {
        return FuzzTargets.texts(
                "da=b,c!=d,e,!f,a in (b,c),c notin (x)",
                "einvolvedObject.name=x,metadata.name!=y",
                "f[{\"op\":\"add\",\"path\":\"/metadata/labels/e\",\"value\":\"f\"},{\"op\":\"copy\",\"from\":\"/n\",\"path\":\"/n/-\"},"
                        + "{\"op\":\"move\",\"from\":\"/secrets/0\",\"path\":\"/m\"},{\"op\":\"remove\",\"path\":\"/n/0\"},"
                        + "{\"op\":\"test\",\"path\":\"/kind\",\"value\":\"ServiceAccount\"},{\"op\":\"replace\",\"path\":\"/n\",\"value\":{}}]",
                "g{\"metadata\":{\"labels\":{\"a\":null,\"e\":\"f\"}},\"n\":[1]}",
                "h{\"secrets\":[{\"name\":\"x\",\"$patch\":\"delete\"},{\"name\":\"z\"}],\"metadata\":{\"$retainKeys\":[\"name\"]},"
                        + "\"$deleteFromPrimitiveList/n\":[1],\"$setElementOrder/secrets\":[{\"name\":\"z\"}]}");
    }

    /** A JSON patch may copy 3 MiB, of which each value is an object on the heap. */
    @Override
    public long allocationLimit(int length) {
        return (192L << 20) + 2_000L * length;
    }
}
