// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.webhook;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.admission.Admission;
import io.nereid.control.api.admission.AdmissionContext;
import io.nereid.control.api.admission.Site;
import io.nereid.control.api.config.InferenceServiceConfig;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class AdmissionReviewerTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String GOOD = """
            {"apiVersion":"serving.kserve.io/v1beta1","kind":"InferenceService","metadata":{"name":"iris","namespace":"team"},
            "spec":{"predictor":{"sklearn":{"storageUri":"gs://b"}}}}
            """;
    private static final String BAD =
            GOOD.replace("\"storageUri\":\"gs://b\"", "\"name\":\"x\"").replace("iris", "1ris");

    private final AdmissionReviewer reviewer = reviewer(AdmissionContext.NONE);

    private static AdmissionReviewer reviewer(AdmissionContext context) {
        return new AdmissionReviewer(new Admission(context, Site.KUBERNETES), new Admission(context, Site.KUBERNETES));
    }

    private static JsonNode review(String operation, String object, String old) throws Exception {
        ObjectNode review = (ObjectNode) JSON.readTree("""
                {"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1"}}
                """);
        ObjectNode request = review.withObjectProperty("request").put("operation", operation);
        request.set("object", JSON.readTree(object));
        request.set("oldObject", JSON.readTree(old));
        return review;
    }

    private JsonNode response(String operation, String object, String old) throws Exception {
        ObjectNode answer = reviewer.review(review(operation, object, old));
        assertThat(answer.path("apiVersion").asText()).isEqualTo("admission.k8s.io/v1");
        assertThat(answer.path("kind").asText()).isEqualTo("AdmissionReview");
        assertThat(answer.path("response").path("uid").asText()).isEqualTo("u-1");
        assertThat(answer.path("response").has("patch")).isFalse();
        return answer.path("response");
    }

    @Test
    void aValidServiceIsAllowedAndAnInvalidOneIsRefusedWithAllProblems() throws Exception {
        assertThat(response("CREATE", GOOD, "null").path("allowed").asBoolean()).isTrue();
        JsonNode refused = response("CREATE", BAD, "null");
        assertThat(refused.path("allowed").asBoolean()).isFalse();
        assertThat(refused.path("status").path("code").asInt()).isEqualTo(403);
        assertThat(refused.path("status").path("message").asText()).contains("InferenceService 1ris is invalid");
    }

    @Test
    void aServiceThatBecameInvalidCanStillBeDeletedAndLoseItsFinalizer() throws Exception {
        String finalized = BAD.replace("\"namespace\":\"team\"", "\"namespace\":\"team\",\"finalizers\":[\"a.b/c\"]");
        assertThat(response("UPDATE", finalized, BAD).path("allowed").asBoolean())
                .isTrue();
        assertThat(response("DELETE", "null", BAD).path("allowed").asBoolean()).isTrue();
        String deleted = BAD.replace(
                "\"namespace\":\"team\"", "\"namespace\":\"team\",\"deletionTimestamp\":\"2030-01-01T00:00:00Z\"");
        assertThat(response("UPDATE", deleted, GOOD).path("allowed").asBoolean())
                .isTrue();
        assertThat(response("UPDATE", BAD, GOOD).path("allowed").asBoolean()).isFalse();
    }

    @Test
    void anUnknownEngineIsRefusedOnServicesAndNamespaces() throws Exception {
        String annotated = GOOD.replace(
                "\"namespace\":\"team\"",
                "\"namespace\":\"team\",\"annotations\":{\"nereid.io/serving-engine\":\"ENGINE\"}");
        assertThat(response("CREATE", annotated.replace("ENGINE", "nereid"), "null")
                        .path("allowed")
                        .asBoolean())
                .isTrue();
        String namespace = "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"team\","
                + "\"annotations\":{\"nereid.io/serving-engine\":\"ENGINE\"}}}";
        assertThat(response("UPDATE", namespace.replace("ENGINE", "kserve"), "null")
                        .path("allowed")
                        .asBoolean())
                .isTrue();
        for (String wrong : List.of(annotated, namespace)) {
            JsonNode refused = response("UPDATE", wrong.replace("ENGINE", "triton"), "null");
            assertThat(refused.path("allowed").asBoolean()).isFalse();
            assertThat(refused.at("/status/message").asText())
                    .contains("nereid.io/serving-engine", "\"triton\" is not one of nereid, kserve");
        }
    }

    @Test
    void anExplainerThatNeedsTheModelItselfIsRefusedByName() throws Exception {
        String spec = "\"spec\":{\"explainer\":{\"nereid\":{\"method\":\"METHOD\"}},"
                + "\"transformer\":{\"nereid\":{\"storageUri\":\"gs://steps/words\"}},";
        String service = GOOD.replace("\"spec\":{", spec);
        JsonNode taken = response("CREATE", service.replace("METHOD", "shap"), "null");
        assertThat(taken.path("allowed").asBoolean()).as("%s", taken).isTrue();
        JsonNode refused = response("CREATE", service.replace("METHOD", "tree_shap"), "null");
        assertThat(refused.path("allowed").asBoolean()).isFalse();
        assertThat(refused.at("/status/message").asText())
                .contains("spec.explainer.nereid.method: tree_shap needs the trees of the model");
    }

    private List<String> warnings(String object) throws Exception {
        JsonNode response = response("CREATE", object, "null");
        assertThat(response.path("allowed").asBoolean()).as(response.toString()).isTrue();
        List<String> warnings = new ArrayList<>();
        response.path("warnings").forEach(one -> warnings.add(one.asText()));
        return warnings;
    }

    @Test
    void fieldsOfTheKnativeModeAreNamedInTheStandardMode() throws Exception {
        String spec = "\"predictor\":{\"minReplicas\":0,\"containerConcurrency\":2,\"canaryTrafficPercent\":20,";
        String knative = GOOD.replace("\"predictor\":{", spec);
        assertThat(warnings(knative)).as("the default is Knative").isEmpty();
        String standard = knative.replace(
                "\"namespace\":\"team\"",
                "\"namespace\":\"team\",\"annotations\":{\"serving.kserve.io/deploymentMode\":\"Standard\"}");
        assertThat(warnings(standard))
                .hasSize(3)
                .allMatch(one -> one.contains("has no effect in the deployment mode Standard"))
                .allMatch(one -> one.endsWith("set the annotation serving.kserve.io/deploymentMode: Knative"))
                .anyMatch(one -> one.startsWith("spec.predictor.minReplicas: 0 "))
                .anyMatch(one -> one.startsWith("spec.predictor.containerConcurrency "))
                .anyMatch(one -> one.startsWith("spec.predictor.canaryTrafficPercent "));
        String none = "\"annotations\":{\"serving.kserve.io/autoscalerClass\":\"none\",";
        assertThat(warnings(standard.replace("\"annotations\":{", none)))
                .as("without an autoscaler there may be no replicas")
                .hasSize(2)
                .noneMatch(one -> one.contains("minReplicas"));
    }

    @Test
    void aBlockWinsOverAModelThatTheDefaulterOfKserveHadStored() throws Exception {
        String stored = GOOD.replace(
                "{\"sklearn\":{\"storageUri\":\"gs://b\"}}",
                "{\"model\":{\"modelFormat\":{\"name\":\"sklearn\"},\"name\":\"\",\"resources\":{},\"storageUri\":\"gs://b\"}}");
        String both = stored.replace("{\"model\":", "{\"sklearn\":{\"storageUri\":\"gs://c\"},\"model\":");
        JsonNode applied = response("UPDATE", both, stored);
        assertThat(applied.path("allowed").asBoolean()).as("%s", applied).isTrue();
        assertThat(applied.path("warnings").isEmpty()).as("%s", applied).isTrue();
        JsonNode edited =
                response("UPDATE", both.replace("\"resources\":{},", "\"runtime\":\"kserve-sklearnserver\","), both);
        assertThat(edited.path("allowed").asBoolean()).as("%s", edited).isTrue();
        assertThat(edited.at("/warnings/0").asText())
                .isEqualTo("spec.predictor.model has no effect: sklearn beside it is served, as in KServe;"
                        + " change sklearn, or remove it");
    }

    @Test
    void aNewNameNeedsANewModelInABlockAsWell() throws Exception {
        String named = GOOD.replace("{\"sklearn\":", "{\"name\":\"next\",\"sklearn\":");
        JsonNode refused = response("UPDATE", named, GOOD);
        assertThat(refused.path("allowed").asBoolean()).isFalse();
        assertThat(refused.at("/status/message").asText()).contains("while storageUri stays");
        assertThat(response("UPDATE", named.replace("gs://b", "gs://c"), GOOD)
                        .path("allowed")
                        .asBoolean())
                .isTrue();
    }

    @Test
    void otherKindsAreNotItsConcern() throws Exception {
        assertThat(response("CREATE", "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"data\":3}", "null")
                        .path("allowed")
                        .asBoolean())
                .isTrue();
    }

    @Test
    void anInternalErrorIsNotARefusal() throws Exception {
        AdmissionContext broken = new AdmissionContext() {
            @Override
            public InferenceServiceConfig config(String namespace) {
                throw ServingException.of(ErrorCode.UNAVAILABLE, "the API server is away");
            }
        };
        AdmissionReviewer failing = reviewer(broken);
        assertThatThrownBy(() -> failing.review(review("CREATE", GOOD, "null"))).isInstanceOf(ServingException.class);
        assertThatThrownBy(() -> failing.review(JSON.readTree("{\"apiVersion\":\"admission.k8s.io/v1beta1\"}")))
                .hasMessageContaining("AdmissionReview");
    }
}
