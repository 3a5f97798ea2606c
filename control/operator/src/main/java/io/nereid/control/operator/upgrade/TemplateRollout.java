// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.upgrade;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.Clock;
import io.nereid.control.core.Plan;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.kubernetes.apply.ApplyDifference;
import io.nereid.control.kubernetes.apply.OwnedFields;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.objects.ServiceObjects;
import io.nereid.control.operator.objects.ServiceObjects.ObjectKey;
import io.nereid.control.plane.ServiceReconciler.ChangeListener;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps the pods of services as they are when a new version of the operator would plan them in another way, and brings the
 * new templates to a few services at a time. A service whose inputs have changed gets its new template at once. What
 * each template was planned from stands on its Deployment ({@link TemplateStamp}), so that another leader goes on where
 * this one was.
 *
 * <p>The next services get their turn when the ones before have all their pods again. While one of them does not get them,
 * no other one follows. Services that are not ready for another reason are left alone.
 *
 * <p>A Deployment that KServe's controller has made keeps the template that it has for as long as that is the one that
 * KServe would write ({@link KserveTemplates}): a take-over restarts no pod. What KServe adds to pods is added by the
 * operator's webhook then; where there is none, such Deployments get the operator's template in their turn.
 *
 * <p>Thread-safe for different services.
 */
public final class TemplateRollout {
    /** The annotation of a service of which any new value brings the new template at once. */
    public static final String NOW = "nereid.io/upgrade";

    private static final Logger LOG = LoggerFactory.getLogger(TemplateRollout.class);

    private static final int MOST_PLANNED = 20_000;

    /** When a service that waits looks again by itself; normally the listener is called first. */
    private static final Duration AGAIN = Duration.ofMinutes(5);

    /** How long a count of upgrades is used that leaves no place. */
    private static final Duration COUNTED = Duration.ofMillis(500);

    private final Function<String, Map<ObjectKey, ObjectNode>> objects;
    private final Supplier<List<ObjectNode>> deployments;
    private final String shipped;
    private final int budget;
    private final Clock clock;
    private final KserveTemplates kserve;
    private volatile ChangeListener listener = (graph, namespace, name) -> {};

    /** The services that wait for their turn, in the order in which they came. */
    @GuardedBy("this") private final Set<Waiting> waiting = new LinkedHashSet<>();

    /** The services that have their turn but whose Deployments are not written yet, by uid. */
    @GuardedBy("this") private final Set<String> granted = new HashSet<>();

    @GuardedBy("this") private long fullUntil;

    /** What each service was last planned from, by uid. */
    private final Map<String, Planned> planned = new ConcurrentHashMap<>();

    /** What the services of each namespace have in common. */
    private final Map<String, Common> commons = new ConcurrentHashMap<>();

    /** Services of which it was told that their upgrade does not come to an end, by uid. */
    private final Set<String> told = ConcurrentHashMap.newKeySet();

    private record Waiting(String namespace, String name) {}

    /**
     * @param shipped the resources that come with the operator; empty for none
     * @param kserve the templates of KServe that stay
     */
    public TemplateRollout(
            ServiceObjects objects, UpgradeOptions options, String shipped, Clock clock, KserveTemplates kserve) {
        this(objects::of, objects::upgrading, options, shipped, clock, kserve);
    }

    /**
     * @param objects the objects of an owner, by its uid
     * @param deployments the Deployments of all owners with the annotation {@link TemplateStamp#FROM}
     */
    TemplateRollout(
            Function<String, Map<ObjectKey, ObjectNode>> objects,
            Supplier<List<ObjectNode>> deployments,
            UpgradeOptions options,
            String shipped,
            Clock clock,
            KserveTemplates kserve) {
        this.kserve = kserve;
        this.objects = objects;
        this.deployments = deployments;
        this.shipped = options.version() + "\n" + shipped;
        this.budget = options.budget();
        this.clock = clock;
        this.fullUntil = clock.nanos();
    }

    /** Sets the listener that is called when a service has its turn. */
    public void onChange(ChangeListener listener) {
        this.listener = listener;
    }

    /**
     * A Deployment that is to get a template that differs because the operator is another one.
     *
     * @param owned what the operator has applied of it; null for nothing, as of a Deployment of KServe
     */
    private record Held(ObjectNode desired, @Nullable ObjectNode owned, TemplateStamp before) {}

    /**
     * What a service is planned from, and whether its pods are from before. Immutable.
     *
     * @param form the operator's form
     * @param inputs what the operator is given
     */
    public record Planned(String form, String inputs) {}

    /** What the services of a namespace have in common, for as long as its catalog is the same. Immutable but for the map. */
    private record Common(RuntimeCatalog catalog, String form, Map<Set<String>, String> given) {}

    /** Takes up what a service is planned from; {@link #pin} uses it. */
    public Planned planned(ObjectNode service, JsonNode status, RuntimeCatalog catalog) {
        String namespace = service.path("metadata").path("namespace").asText();
        Common common = common(namespace, catalog);
        Set<String> runtimes = TemplateInputs.runtimes(service, status);
        String given =
                common.given.computeIfAbsent(runtimes, names -> TemplateInputs.given(namespace, names, common.catalog));
        Planned now = new Planned(common.form, TemplateInputs.inputs(service, runtimes, given));
        planned.put(service.path("metadata").path("uid").asText(), now);
        return now;
    }

    /** The digests of large trees are made once for a catalog, which is made anew with each change. */
    private Common common(String namespace, RuntimeCatalog catalog) {
        Common known = commons.get(namespace);
        if (known != null && isSame(known.catalog, catalog)) {
            return known;
        }
        Common made = new Common(
                catalog,
                TemplateInputs.form(shipped, catalog.config().forNamespace(namespace)),
                new ConcurrentHashMap<>());
        commons.put(namespace, made);
        return made;
    }

    @SuppressWarnings("ReferenceEquality") // an equal catalog would cost more to compare than to digest
    private static boolean isSame(RuntimeCatalog one, RuntimeCatalog other) {
        return one == other;
    }

    /**
     * Whether a stored Deployment was planned from the same inputs in another form: what differs in its plan is the
     * operator's doing.
     */
    public static boolean isOfAnotherForm(@Nullable ObjectNode deployment, Planned planned) {
        TemplateStamp stamp = deployment == null ? null : TemplateStamp.of(deployment);
        return stamp != null
                && !stamp.form().equals(planned.form())
                && stamp.inputs().equals(planned.inputs());
    }

    /**
     * Stamps the Deployments that are to be applied, and gives those whose turn has not come the templates that they have.
     *
     * @param desired the objects to apply; changed
     * @param snapshots Deployments that follow no change of the service's inputs, such as those of older revisions
     * @param bare the same objects before anything is added to the pods, as KServe would write them; empty for objects
     *     that KServe does not make
     * @return whether the service waits for its turn. {@link #applied} must be called once the objects are written
     */
    public boolean pin(ObjectNode service, List<ObjectNode> desired, Set<String> snapshots, List<ObjectNode> bare) {
        String uid = service.path("metadata").path("uid").asText();
        Planned now = planned.get(uid);
        if (now == null) {
            // A graph, which has no pods.
            return false;
        }
        Map<ObjectKey, ObjectNode> stored = objects.apply(uid);
        boolean asked = service.path("metadata").path("annotations").has(NOW);
        List<Held> held = new ArrayList<>();
        boolean complete = true;
        boolean failing = false;
        for (ObjectNode object : desired) {
            if (!object.path("kind").asText().equals("Deployment")
                    || object.path("metadata").has("resourceVersion")) {
                continue;
            }
            String name = object.path("metadata").path("name").asText();
            ObjectNode before = stored.get(new ObjectKey("Deployment", name));
            TemplateStamp present = before == null ? null : TemplateStamp.of(before);
            if (before != null
                    && present != null
                    && present.equals(new TemplateStamp(now.form(), now.inputs(), ""))
                    && !snapshots.contains(name)
                    && OwnedFields.has(before, ClusterClient.FIELD_MANAGER)) {
                // The usual case: whatever differs is of this version of the operator.
                present.on(object);
                continue;
            }
            ObjectNode owned = before == null ? null : OwnedFields.of(before, ClusterClient.FIELD_MANAGER);
            TemplateStamp stamp = present;
            if (before != null && !asked && (owned == null || stamp != null && stamp.isOfKserve())) {
                ObjectNode plain = KserveTemplates.find(bare, object);
                TemplateStamp wanted = TemplateStamp.ofKserve(now);
                if (plain != null && kserve.stay() && (wanted.equals(stamp) || kserve.isPresent(plain, before))) {
                    wanted.on(object);
                    keep(new Held(object, null, wanted), desired);
                    continue;
                }
                if (plain != null && (stamp == null || stamp.inputs().equals(now.inputs()))) {
                    held.add(new Held(object, null, new TemplateStamp(TemplateStamp.UNKNOWN, now.inputs(), "")));
                    complete &= isComplete(before);
                    continue;
                }
            }
            if (before == null || owned == null) {
                new TemplateStamp(now.form(), now.inputs(), "").on(object);
                continue;
            }
            String inputs = snapshots.contains(name) && stamp != null ? stamp.inputs() : now.inputs();
            if (!differs(object, owned, before)) {
                TemplateStamp kept = stamp != null && stamp.inputs().equals(inputs)
                        ? stamp
                        : new TemplateStamp(now.form(), inputs, "");
                kept.on(object);
            } else if (stamp != null
                    && (stamp.form().equals(now.form()) || !stamp.inputs().equals(inputs))) {
                new TemplateStamp(now.form(), inputs, "").on(object);
            } else {
                held.add(new Held(
                        object, owned, stamp == null ? new TemplateStamp(TemplateStamp.UNKNOWN, inputs, "") : stamp));
                complete &= isComplete(before);
                failing |= stamp != null && !stamp.from().isEmpty() && !isComplete(before);
            }
        }
        if (held.isEmpty()) {
            left(service);
            return false;
        }
        boolean turn = (complete || failing) && turn(service, uid, failing);
        if (!complete && !failing) {
            // It is not ready for another reason: others come first.
            left(service);
            next();
        }
        for (Held one : held) {
            if (turn) {
                new TemplateStamp(now.form(), one.before.inputs(), one.before.form()).on(one.desired);
            } else {
                one.before.on(one.desired);
                keep(one, desired);
            }
        }
        return !turn;
    }

    /** Whether a template differs from the one that the operator has applied. */
    private static boolean differs(ObjectNode desired, ObjectNode owned, ObjectNode stored) {
        ObjectNode changed = owned.deepCopy();
        changed.withObjectProperty("spec").set("template", desired.path("spec").path("template"));
        return ApplyDifference.find(changed, stored, ClusterClient.FIELD_MANAGER) != null;
    }

    /** Keeps the template, and the ports of the Service that leads to its pods. */
    private void keep(Held held, List<ObjectNode> desired) {
        JsonNode template = held.owned == null
                ? MissingNode.getInstance()
                : held.owned.path("spec").path("template");
        ObjectNode spec = held.desired.withObjectProperty("spec");
        if (template.isMissingNode()) {
            // It stays that of KServe, whose fields an apply without them leaves alone.
            spec.remove("template");
            return;
        }
        spec.set("template", template);
        JsonNode selector = held.desired.path("spec").path("selector").path("matchLabels");
        for (ObjectNode object : desired) {
            if (object.path("kind").asText().equals("Service")
                    && !object.path("metadata").has("resourceVersion")
                    && object.path("spec").path("selector").equals(selector)) {
                ObjectNode before = objects.apply(object.path("metadata")
                                .path("ownerReferences")
                                .path(0)
                                .path("uid")
                                .asText())
                        .get(new ObjectKey(
                                "Service", object.path("metadata").path("name").asText()));
                ObjectNode owned = before == null ? null : OwnedFields.of(before, ClusterClient.FIELD_MANAGER);
                if (owned != null && owned.path("spec").has("ports")) {
                    object.withObjectProperty("spec")
                            .set("ports", owned.path("spec").path("ports"));
                }
            }
        }
    }

    /**
     * Whether a service gets its new template now.
     *
     * @param failing whether an upgrade before has left it without its pods, so that there is nothing to lose
     */
    private synchronized boolean turn(ObjectNode service, String uid, boolean failing) {
        Waiting entry = waiting(service);
        if (failing || budget > 0 && hasPlace(uid)) {
            waiting.remove(entry);
            granted.add(uid);
            LOG.info(
                    "{}/{}: its pods get the template of this version of the operator; {} services wait",
                    entry.namespace(),
                    entry.name(),
                    waiting.size());
            return true;
        }
        waiting.add(entry);
        return false;
    }

    private static Waiting waiting(ObjectNode service) {
        return new Waiting(
                service.path("metadata").path("namespace").asText(),
                service.path("metadata").path("name").asText());
    }

    @GuardedBy("this") private boolean hasPlace(String uid) {
        if (clock.nanos() - fullUntil < 0) {
            return false;
        }
        Set<String> upgrading = new HashSet<>(granted);
        for (ObjectNode deployment : deployments.get()) {
            TemplateStamp stamp = TemplateStamp.of(deployment);
            if (stamp != null && !stamp.from().isEmpty() && !isComplete(deployment)) {
                upgrading.add(deployment
                        .path("metadata")
                        .path("ownerReferences")
                        .path(0)
                        .path("uid")
                        .asText());
                if (hasFailed(deployment)) {
                    upgrading.clear();
                    fullUntil = clock.nanos() + COUNTED.toNanos();
                    return false;
                }
            }
        }
        upgrading.remove(uid);
        if (upgrading.size() >= budget) {
            fullUntil = clock.nanos() + COUNTED.toNanos();
            return false;
        }
        return true;
    }

    /** The objects of a service are written, or could not be. */
    public synchronized void applied(ObjectNode service) {
        granted.remove(service.path("metadata").path("uid").asText());
    }

    private void left(ObjectNode service) {
        synchronized (this) {
            waiting.remove(waiting(service));
        }
    }

    /**
     * Tells the next services when a service has come to the end of its upgrade, and says so when it does not.
     *
     * @return what is to be told of the service
     */
    public List<Plan.Event> observe(ObjectNode service) {
        String uid = service.path("metadata").path("uid").asText();
        boolean upgraded = false;
        boolean complete = true;
        String failed = "";
        for (Map.Entry<ObjectKey, ObjectNode> entry : objects.apply(uid).entrySet()) {
            TemplateStamp stamp =
                    entry.getKey().kind().equals("Deployment") ? TemplateStamp.of(entry.getValue()) : null;
            if (stamp != null && !stamp.from().isEmpty()) {
                upgraded = true;
                complete &= isComplete(entry.getValue());
                if (!isComplete(entry.getValue()) && hasFailed(entry.getValue())) {
                    failed = entry.getKey().name();
                }
            }
        }
        if (upgraded && complete) {
            told.remove(uid);
            next();
        }
        if (failed.isEmpty() || !told.add(uid)) {
            return List.of();
        }
        String message =
                "the pods of Deployment " + failed + " do not become ready with the template of this version of"
                        + " the operator; no other service gets its new template until they do, or until the service is changed";
        LOG.error(
                "{}/{}: {}",
                service.path("metadata").path("namespace").asText(),
                service.path("metadata").path("name").asText(),
                message);
        return List.of(new Plan.Event("Warning", "UpgradeHalted", message));
    }

    private void next() {
        List<Waiting> told = new ArrayList<>();
        synchronized (this) {
            if (budget == 0 || waiting.isEmpty()) {
                return;
            }
            fullUntil = clock.nanos();
            Iterator<Waiting> each = waiting.iterator();
            while (each.hasNext() && told.size() < budget) {
                // They come again by themselves if they cannot go now.
                told.add(each.next());
                each.remove();
            }
        }
        told.forEach(one -> listener.changed(false, one.namespace(), one.name()));
    }

    /** When a service that waits is to be looked at again. */
    public Duration again() {
        return AGAIN;
    }

    /** How many services wait for their turn. */
    public synchronized int waiting() {
        return waiting.size();
    }

    /** Forgets a service that is gone. */
    public synchronized void forget(String namespace, String name) {
        waiting.remove(new Waiting(namespace, name));
        // Others may be planned again soon, which costs no more than this.
        if (planned.size() > MOST_PLANNED) {
            planned.clear();
        }
    }

    /** Whether all pods of a Deployment are of its present template and available. */
    static boolean isComplete(ObjectNode deployment) {
        JsonNode status = deployment.path("status");
        int replicas = deployment.path("spec").path("replicas").asInt(1);
        return status.path("observedGeneration").asLong()
                        >= deployment.path("metadata").path("generation").asLong()
                && status.path("updatedReplicas").asInt() >= replicas
                && status.path("availableReplicas").asInt() >= replicas
                && status.path("replicas").asInt()
                        <= status.path("updatedReplicas").asInt();
    }

    /** Whether the Deployment has given up. */
    private static boolean hasFailed(ObjectNode deployment) {
        for (JsonNode condition : deployment.path("status").path("conditions")) {
            if (condition.path("type").asText().equals("Progressing")
                    && condition.path("status").asText().equals("False")) {
                return true;
            }
        }
        return false;
    }
}
