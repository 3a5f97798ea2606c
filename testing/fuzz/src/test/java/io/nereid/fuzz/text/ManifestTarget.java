// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.text;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.admission.Admission;
import io.nereid.control.api.admission.AdmissionContext;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.fuzz.FuzzTarget;
import io.nereid.fuzz.FuzzTargets;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * A manifest in YAML or JSON, and the admission of its resources. A resource written as JSON is read as the same; an admitted one is
 * admitted unchanged. Confined to one thread.
 */
public final class ManifestTarget implements FuzzTarget {
    private final Admission admission = new Admission(AdmissionContext.NONE);

    @Override
    public void read(byte[] input) {
        List<ObjectNode> resources = ManifestReader.parse(new String(input, StandardCharsets.UTF_8), "f.yaml");
        for (ObjectNode resource : resources) {
            String json = resource.toString();
            boolean list = resource.path("kind").asText("").endsWith("List");
            if (!list && !ManifestReader.parse(json, "f.json").toString().equals("[" + json + "]")) {
                throw new AssertionError("written as " + json + ", read as " + ManifestReader.parse(json, "f.json"));
            }
            ObjectNode admitted = admission
                    .admit(ResourceKinds.of(resource), resource.deepCopy(), null)
                    .resource();
            ObjectNode again = admission
                    .admit(ResourceKinds.of(resource), admitted.deepCopy(), null)
                    .resource();
            if (!again.equals(admitted)) {
                throw new AssertionError("admitted as " + admitted + ", then as " + again);
            }
        }
    }

    @Override
    public List<byte[]> seeds() {
        return FuzzTargets.texts(
                """
                apiVersion: serving.kserve.io/v1beta1
                kind: InferenceService
                metadata: &m {name: iris, labels: {a: "b"}}
                spec:
                  predictor:
                    minReplicas: 1
                    model: {modelFormat: {name: sklearn}, storageUri: "file:///m", args: [a, 'b', "c"]}
                ---
                {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {a: b}}]}
                """,
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, <<: &a {x: y}}\ndata:\n  a: |\n    b\n  c: >-\n    d\n\n    e\n",
                "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"n\"}}");
    }

    @Override
    public long allocationLimit(int length) {
        return (16L << 20) + 8_000L * length;
    }
}
