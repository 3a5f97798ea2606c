// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.upgrade;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.control.core.Plan;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.operator.objects.ServiceObjects.ObjectKey;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** Whose pods get a new template when, with Deployments that the test holds. */
class TemplateRolloutTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Map<String, ObjectNode> stored = new TreeMap<>();
    private final List<String> woken = new ArrayList<>();

    private static ObjectNode tree(String json) {
        try {
            return (ObjectNode) JSON.readTree(json.replace('\'', '"'));
        } catch (JsonProcessingException e) {
            throw new AssertionError(json, e);
        }
    }

    private TemplateRollout operator(String version, int budget) {
        TemplateRollout rollout = new TemplateRollout(
                uid -> stored.containsKey(uid) ? Map.of(new ObjectKey("Deployment", uid), stored.get(uid)) : Map.of(),
                () -> List.copyOf(stored.values()),
                new UpgradeOptions(version, budget),
                "",
                Clock.system(),
                KserveTemplates.none());
        rollout.onChange((graph, namespace, name) -> woken.add(name));
        return rollout;
    }

    private static ObjectNode service(String name) {
        return tree("{'metadata':{'name':'" + name + "','namespace':'default','uid':'" + name
                + "'},'spec':{'predictor':{'model':{'storageUri':'gs://models/" + name + "'},'minReplicas':1}}}");
    }

    private static ObjectNode desired(String name, String image) {
        return tree("{'apiVersion':'apps/v1','kind':'Deployment','metadata':{'name':'" + name
                + "','namespace':'default','ownerReferences':[{'uid':'" + name + "'}]},'spec':{'template':{'spec':"
                + "{'containers':[{'name':'main','image':'" + image + "'}]}}}}");
    }

    /** Has an operator reconcile a service, and takes up what it would apply; returns the image of the pods. */
    private String reconcile(TemplateRollout operator, ObjectNode service, String image) {
        String name = service.path("metadata").path("name").asText();
        ObjectNode deployment = desired(name, image);
        operator.planned(service, tree("{}"), RuntimeCatalog.builtIn());
        boolean waits = operator.pin(service, List.of(deployment), Set.of(), List.of());
        store(deployment);
        operator.applied(service);
        String now = deployment.at("/spec/template/spec/containers/0/image").asText();
        assertThat(waits).isEqualTo(!now.equals(image));
        return now;
    }

    private void store(ObjectNode deployment) {
        String name = deployment.path("metadata").path("name").asText();
        ObjectNode before = stored.get(name);
        boolean same = before != null && before.at("/spec/template").equals(deployment.at("/spec/template"));
        ObjectNode object = deployment.deepCopy();
        ObjectNode fields = tree("{'f:metadata':{'f:annotations':{},'f:ownerReferences':{\"k:{\\\"uid\\\":\\\"" + name
                + "\\\"}\":{}}},'f:spec':{'f:template':{'f:spec':{'f:containers':{\"k:{\\\"name\\\":\\\"main\\\"}\":"
                + "{'.':{},'f:name':{},'f:image':{}}}}}}}");
        ArrayNode managers = object.withObject("/metadata").putArray("managedFields");
        managers.addObject().put("manager", "nereid").put("operation", "Apply").set("fieldsV1", fields);
        object.withObject("/spec").put("replicas", 1);
        object.set("status", same ? before.path("status") : tree("{'replicas':2,'updatedReplicas':1}"));
        stored.put(name, object);
    }

    private void ready(String name) {
        stored.get(name).set("status", tree("{'replicas':1,'updatedReplicas':1,'availableReplicas':1}"));
    }

    private void fail(String name) {
        stored.get(name)
                .set(
                        "status",
                        tree(
                                "{'replicas':2,'updatedReplicas':1,'availableReplicas':1,'conditions':[{'type':'Progressing',"
                                        + "'status':'False','reason':'ProgressDeadlineExceeded'}]}"));
    }

    private void installed(String... names) {
        TemplateRollout first = operator("1", 1);
        for (String name : names) {
            assertThat(reconcile(first, service(name), "v1")).isEqualTo("v1");
            ready(name);
        }
    }

    @Test
    void oneAfterTheOtherGetsItsTemplate() {
        installed("a", "b", "c");
        TemplateRollout second = operator("2", 1);
        assertThat(reconcile(second, service("a"), "v2")).isEqualTo("v2");
        assertThat(reconcile(second, service("b"), "v2")).isEqualTo("v1");
        assertThat(reconcile(second, service("c"), "v2")).isEqualTo("v1");
        assertThat(second.waiting()).isEqualTo(2);
        assertThat(second.observe(service("a"))).isEmpty();
        assertThat(woken).isEmpty();
        ready("a");
        assertThat(second.observe(service("a"))).isEmpty();
        assertThat(woken).containsExactly("b");
        assertThat(reconcile(second, service("b"), "v2")).isEqualTo("v2");
        // Another leader finds out from the Deployments who is on the way.
        TemplateRollout another = operator("2", 1);
        assertThat(reconcile(another, service("c"), "v2")).isEqualTo("v1");
    }

    @Test
    void aChangedServiceIsUpgradedAtOnceAndScalingIsNoChange() {
        installed("a", "b");
        TemplateRollout second = operator("2", 0);
        ObjectNode scaled = service("a");
        scaled.withObject("/spec/predictor").put("minReplicas", 3);
        assertThat(reconcile(second, scaled, "v2")).isEqualTo("v1");
        ObjectNode changed = service("a");
        changed.withObject("/spec/predictor/model").put("storageUri", "gs://models/other");
        assertThat(reconcile(second, changed, "v2")).isEqualTo("v2");
        ObjectNode asked = service("b");
        asked.withObject("/metadata/annotations").put(TemplateRollout.NOW, "today");
        assertThat(reconcile(second, asked, "v2")).isEqualTo("v2");
        assertThat(second.waiting()).isZero();
    }

    @Test
    void whatChangesInTheSameFormIsAppliedAtOnce() {
        installed("a");
        TemplateRollout again = operator("1", 0);
        assertThat(reconcile(again, service("a"), "other")).isEqualTo("other");
    }

    @Test
    void anUpgradeThatFailsHoldsTheOthersUntilItIsMended() {
        installed("a", "b");
        TemplateRollout second = operator("2", 5);
        assertThat(reconcile(second, service("a"), "broken")).isEqualTo("broken");
        fail("a");
        List<Plan.Event> events = second.observe(service("a"));
        assertThat(events).extracting(Plan.Event::reason).containsExactly("UpgradeHalted");
        assertThat(second.observe(service("a"))).as("told once").isEmpty();
        assertThat(reconcile(second, service("b"), "broken")).isEqualTo("v1");
        // Another version has nothing to lose with the service that failed.
        TemplateRollout third = operator("3", 1);
        assertThat(reconcile(third, service("a"), "v3")).isEqualTo("v3");
        assertThat(reconcile(third, service("b"), "v3")).isEqualTo("v1");
        ready("a");
        assertThat(third.observe(service("a"))).isEmpty();
        assertThat(woken).containsExactly("b");
        assertThat(reconcile(third, service("b"), "v3")).isEqualTo("v3");
    }

    @Test
    void aServiceThatIsNotReadyIsLeftAlone() {
        installed("a", "b");
        fail("a");
        TemplateRollout second = operator("2", 1);
        assertThat(reconcile(second, service("a"), "v2")).isEqualTo("v1");
        assertThat(reconcile(second, service("b"), "v2")).isEqualTo("v2");
        ready("a");
        assertThat(reconcile(second, service("a"), "v2")).as("b is on the way").isEqualTo("v1");
    }

    @Test
    void aDeploymentWithoutAStampKeepsItsTemplateAndIsStamped() {
        installed("a");
        stored.get("a").withObject("/metadata/annotations").removeAll();
        TemplateRollout second = operator("2", 0);
        assertThat(reconcile(second, service("a"), "v2")).isEqualTo("v1");
        assertThat(stored.get("a").at("/metadata/annotations").toString()).contains("unknown.");
        ObjectNode changed = service("a");
        changed.withObject("/spec/predictor/model").put("storageUri", "gs://models/other");
        assertThat(reconcile(second, changed, "v2")).isEqualTo("v2");
    }

    /** Has an operator take a Deployment of KServe over; returns whether its template stays. */
    private boolean keeps(TemplateRollout operator, ObjectNode service, String bareImage) {
        String name = service.path("metadata").path("name").asText();
        ObjectNode deployment = desired(name, "whole");
        operator.planned(service, tree("{}"), RuntimeCatalog.builtIn());
        operator.pin(service, List.of(deployment), Set.of(), List.of(desired(name, bareImage)));
        operator.applied(service);
        stored.get(name).withObject("/metadata").set("annotations", deployment.at("/metadata/annotations"));
        boolean kept = !deployment.path("spec").has("template");
        if (!kept) {
            stored.get(name).set("status", tree("{'replicas':2,'updatedReplicas':1}"));
        }
        return kept;
    }

    private TemplateRollout operator(String version, boolean stay) {
        return new TemplateRollout(
                uid -> Map.of(new ObjectKey("Deployment", uid), stored.get(uid)),
                () -> List.copyOf(stored.values()),
                new UpgradeOptions(version, 1),
                "",
                Clock.system(),
                new KserveTemplates(deployment -> deployment, stay));
    }

    private void madeByKserve(String name) {
        stored.put(name, desired(name, "kserve"));
        ready(name);
    }

    private String stamp(String name) {
        return stored.get(name)
                .at("/metadata/annotations")
                .path(TemplateStamp.ANNOTATION)
                .asText();
    }

    @Test
    void aTemplateOfKserveStaysWhileKserveWouldWriteIt() {
        madeByKserve("a");
        TemplateRollout first = operator("1", true);
        assertThat(keeps(first, service("a"), "kserve")).isTrue();
        assertThat(stamp("a")).startsWith("kserve-");
        // A change of the service that does not reach KServe's template, and another version of the operator.
        ObjectNode labelled = service("a");
        labelled.withObject("/metadata/labels").put("team", "blue");
        assertThat(keeps(first, labelled, "kserve")).isTrue();
        assertThat(keeps(operator("2", true), labelled, "kserve")).isTrue();
        // A change that does.
        ObjectNode changed = service("a");
        changed.withObject("/spec/predictor/model").put("storageUri", "gs://models/other");
        assertThat(keeps(first, changed, "other")).isFalse();
        assertThat(stamp("a")).doesNotStartWith("kserve-");
    }

    @Test
    void templatesOfKserveThatDoNotStayComeInTheirTurn() {
        madeByKserve("old");
        madeByKserve("older");
        TemplateRollout first = operator("1", true);
        assertThat(keeps(first, service("old"), "newer")).isFalse();
        assertThat(keeps(first, service("older"), "newer"))
                .as("waits for its turn")
                .isTrue();
        madeByKserve("a");
        madeByKserve("b");
        TemplateRollout without = operator("1", false);
        stored.remove("old");
        assertThat(keeps(without, service("a"), "kserve")).isFalse();
        assertThat(keeps(without, service("b"), "kserve")).isTrue();
        assertThat(stamp("b")).startsWith("unknown.");
    }

    @Test
    void aServiceThatAsksForItGetsTheTemplateOfTheOperator() {
        madeByKserve("a");
        TemplateRollout first = operator("1", true);
        assertThat(keeps(first, service("a"), "kserve")).isTrue();
        ObjectNode asked = service("a");
        asked.withObject("/metadata/annotations").put(TemplateRollout.NOW, "today");
        assertThat(keeps(first, asked, "kserve")).isFalse();
    }
}
