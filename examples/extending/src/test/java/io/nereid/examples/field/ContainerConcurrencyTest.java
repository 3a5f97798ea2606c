// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.examples.field;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.admission.Admission;
import io.nereid.control.api.admission.AdmissionContext;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.control.core.ObservedState;
import io.nereid.control.core.Plan;
import io.nereid.control.core.Workload;
import io.nereid.control.core.plan.Planner;
import io.nereid.control.core.runtime.RuntimeCatalog;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Follows one field of an InferenceService from the text to the workload. */
class ContainerConcurrencyTest {
    private static final String MANIFEST = """
        apiVersion: serving.kserve.io/v1beta1
        kind: InferenceService
        metadata: {name: iris}
        spec:
          predictor:
            FIELD
            model:
              modelFormat: {name: sklearn}
              storageUri: /models/iris
        """;

    private static final Instant NOW = Instant.parse("2026-03-01T12:00:00Z");

    private static InferenceService admit(String field) {
        ObjectNode resource = ManifestReader.parse(MANIFEST.replace("FIELD", field), "iris.yaml")
                .get(0);
        Admission admission = new Admission(AdmissionContext.NONE);
        return InferenceService.read(
                admission.admit(ResourceKinds.INFERENCE_SERVICE, resource, null).resource());
    }

    private static Workload plan(InferenceService service) {
        ObservedState nothing = new ObservedState(Map.of(), List.of(), service.status());
        Plan plan = Planner.plan(service, RuntimeCatalog.builtIn(), nothing, NOW);
        return plan.workloads().get(0);
    }

    @Test
    void theSchemaAndTheRecordKnowTheField() {
        InferenceService service = admit("containerConcurrency: 4");
        assertThat(service.predictor().extension().containerConcurrency()).isEqualTo(4);
    }

    @Test
    void admissionRejectsANegativeValue() {
        assertThatThrownBy(() -> admit("containerConcurrency: -1"))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("spec.predictor.containerConcurrency: -1 is less than 0");
    }

    @Test
    void admissionRejectsAnotherType() {
        assertThatThrownBy(() -> admit("containerConcurrency: many"))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("spec.predictor.containerConcurrency: ");
    }

    @Test
    void aMisspeltFieldIsRejectedWithTheNearestName() {
        assertThatThrownBy(() -> admit("containerConcurency: 4"))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("containerConcurrency");
    }

    @Test
    void thePlannerPassesItToTheWorkload() {
        assertThat(plan(admit("containerConcurrency: 4")).containerConcurrency())
                .isEqualTo(4);
    }

    @Test
    void withoutItThereIsNoLimit() {
        assertThat(plan(admit("minReplicas: 1")).containerConcurrency()).isZero();
    }
}
