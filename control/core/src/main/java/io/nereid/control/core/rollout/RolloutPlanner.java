// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.rollout;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.GoDuration;
import io.nereid.control.core.ObservedState;
import io.nereid.control.core.ObservedState.Traffic;
import io.nereid.control.core.Plan.Event;
import io.nereid.control.core.Revision;
import io.nereid.control.core.Route.Backend;
import io.nereid.control.core.Route.Target;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Scaling;
import io.nereid.control.core.WorkloadCodec;
import io.nereid.control.core.WorkloadState;
import io.nereid.control.core.component.PlanningContext;
import io.nereid.control.core.component.WorkloadPlan;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Plans the rollout of one component: which of its revisions run, and how the traffic is split among them. The rules
 * are those of KServe on Knative: the status records the revision that last received all traffic ({@code
 * latestRolledoutRevision}) and the one before it ({@code previousRolledoutRevision}), so that promotion and rollback
 * only need a change of {@code canaryTrafficPercent}. All state between two plans is in the component's status.
 * Confined to one call of the planner.
 */
public final class RolloutPlanner {
    /** The interval at which the error rate and latency of a canary are checked. */
    private static final Duration HEALTH_CHECK_INTERVAL = Duration.ofSeconds(10);

    private final PlanningContext context;
    private final WorkloadPlan plan;
    private final List<CanaryShare> canaries;
    private final RevisionHistory revisions;
    private final JsonNode before;
    private final Instant now;
    private final List<Event> events;
    /** The duration of gradual rollouts; zero without one. */
    private final Duration rolloutDuration;

    private final ObjectNode status = JsonNodeFactory.instance.objectNode();
    private final Map<String, Integer> desired = new LinkedHashMap<>();
    private final String created;
    private String ready = "";
    private String rolledOut;
    private String previous;
    private @Nullable Duration requeue;
    private @Nullable String rolledBack;

    /** A canary of {@code spec.canary}; the revision is empty when it cannot run. */
    public record CanaryShare(String name, WorkloadPlan plan, int percent, String revision) {}

    public RolloutPlanner(
            PlanningContext context,
            WorkloadPlan plan,
            Map<String, Map.Entry<WorkloadPlan, Integer>> canaryPlans,
            RevisionHistory revisions,
            JsonNode before,
            Instant now,
            List<Event> events) {
        this.context = context;
        this.plan = plan;
        this.revisions = revisions;
        this.before = before;
        this.now = now;
        this.events = events;
        this.rolloutDuration = rolloutDuration(annotation("serving.knative.dev/rollout-duration"));
        Revision current = revisions.current(plan);
        this.created = current == null ? "" : current.name();
        List<CanaryShare> all = new ArrayList<>();
        canaryPlans.forEach((name, one) -> {
            Revision revision = revisions.current(one.getKey());
            all.add(new CanaryShare(name, one.getKey(), one.getValue(), revision == null ? "" : revision.name()));
        });
        this.canaries = List.copyOf(all);
        this.rolledOut = revisions.known(before.path("latestRolledoutRevision").asText());
        this.previous = revisions.known(before.path("previousRolledoutRevision").asText());
    }

    /**
     * Plans the rollout. The order matters: the health check needs the latest ready revision and may roll it back, and
     * the shares depend on both.
     */
    public RolloutPlan plan() {
        findReady();
        checkHealth();
        share();
        List<Target> targets = targets();
        Set<String> running = running(targets);
        List<Workload> workloads = new ArrayList<>();
        for (String one : running) {
            workloads.add(scaled(revisions.workload(one)));
        }
        put("latestReadyRevision", ready);
        put("latestCreatedRevision", created);
        put("previousRolledoutRevision", previous);
        put("latestRolledoutRevision", rolledOut);
        ArrayNode traffic = status.putArray("traffic");
        for (Target target : targets) {
            ObjectNode one = traffic.addObject()
                    .put("revisionName", target.revision())
                    .put("latestRevision", target.revision().equals(ready))
                    .put("percent", target.percent());
            if (target.tag() != null) {
                one.put("tag", target.tag());
            }
        }
        if (traffic.isEmpty()) {
            status.remove("traffic");
        }
        Set<String> used = new LinkedHashSet<>(running);
        used.addAll(List.of(created, ready, rolledOut, previous));
        Map<String, WorkloadState> canaryStates = new LinkedHashMap<>();
        canaries.forEach(one -> canaryStates.put(one.name(), revisions.state(one.revision())));
        Backend backend =
                targets.isEmpty() ? null : new Backend(targets, mirrors(), annotation("nereid.io/sticky-header"));
        return new RolloutPlan(
                plan,
                created,
                !created.isEmpty()
                        && created.equals(ready)
                        && !(revisions.state(created).phase() == ObservedState.Phase.FAILED),
                revisions.state(rolledBack == null ? created : rolledOut),
                backend,
                List.copyOf(workloads),
                revisions.kept(used),
                status,
                rolledBack,
                canaries,
                canaryStates,
                targets.stream().anyMatch(one -> revisions.isReady(one.revision())),
                requeue);
    }

    private void put(String field, String value) {
        if (!value.isEmpty()) {
            status.put(field, value);
        }
    }

    private @Nullable String annotation(String key) {
        String own = plan.extension().annotations().get(key);
        return own == null ? context.annotation(key) : own;
    }

    /**
     * Determines the latest ready revision. A revision that was ready once keeps that role while it is restarting,
     * until a newer one is ready; otherwise traffic would move on every restart.
     */
    private void findReady() {
        String last = revisions.known(before.path("latestReadyRevision").asText());
        if (!created.isEmpty() && revisions.isReady(created)) {
            ready = created;
        } else if (!last.isEmpty()) {
            ready = last;
        } else {
            Revision found = revisions.newestReady(
                    canaries.stream().map(one -> one.plan().base()).collect(Collectors.toSet()));
            ready = found == null ? "" : found.name();
        }
    }

    /**
     * Rolls back a canary whose error rate or latency exceeds the limits of the annotations. The rollback is recorded
     * with the resource's generation and holds until the specification changes, because the statistics alone would soon
     * look healthy again.
     */
    private void checkHealth() {
        long generation = context.service.metadata().generation();
        JsonNode mark = before.path("rolledBack");
        if (mark.path("revisionName").asText().equals(created)
                && !created.isEmpty()
                && mark.path("generation").asLong() == generation) {
            rolledBack = mark.path("message").asText();
            status.set("rolledBack", mark);
            return;
        }
        if (!ready.equals(created) || rolledOut.isEmpty() || rolledOut.equals(created)) {
            return;
        }
        Traffic traffic = revisions.state(created).traffic();
        Double errors = number("nereid.io/rollback-error-percent");
        Double p99 = number("nereid.io/rollback-p99-ms");
        Double least = number("nereid.io/rollback-min-requests");
        if (errors != null || p99 != null) {
            requeue = HEALTH_CHECK_INTERVAL; // requests do not trigger planning, so plan again after this time
        }
        if (percentBefore(created) <= 0 || traffic.requests() < (least == null ? 20 : Math.max(1, least))) {
            return;
        }
        double failed = 100.0 * traffic.errors() / traffic.requests();
        String why = null;
        if (errors != null && failed > errors) {
            why = String.format(
                    Locale.ROOT,
                    "%.1f %% of its %d requests failed, more than nereid.io/rollback-error-percent allows (%s)",
                    failed,
                    traffic.requests(),
                    text(errors));
        } else if (p99 != null && traffic.p99Millis() > p99) {
            why = String.format(
                    Locale.ROOT,
                    "the 99th percentile of its latency over %d requests was %.0f ms, more than"
                            + " nereid.io/rollback-p99-ms allows (%s)",
                    traffic.requests(),
                    traffic.p99Millis(),
                    text(p99));
        }
        if (why != null) {
            requeue = null;
            rolledBack = "Revision " + created + " was rolled back: " + why;
            status.putObject("rolledBack")
                    .put("revisionName", created)
                    .put("generation", generation)
                    .put("time", time(now))
                    .put("message", rolledBack);
            events.add(new Event(
                    "Warning",
                    "RolledBack",
                    rolledBack + ". All requests go to " + rolledOut + "; change the specification to try again"));
        }
    }

    /** The time in RFC 3339 with whole seconds. */
    private static String time(Instant instant) {
        return instant.truncatedTo(ChronoUnit.SECONDS).toString();
    }

    private static String text(double number) {
        return number == Math.rint(number) ? Long.toString((long) number) : Double.toString(number);
    }

    private int percentBefore(String revision) {
        int percent = 0;
        for (JsonNode one : before.path("traffic")) {
            if (one.path("revisionName").asText().equals(revision)) {
                percent += one.path("percent").asInt();
            }
        }
        return percent;
    }

    /**
     * Computes the desired split of the traffic, regardless of which revisions are ready now, and updates the recorded
     * rolled-out revisions when the newest one has reached 100 percent.
     */
    private void share() {
        if (rolledBack != null) {
            desired.put(rolledOut, 100);
            return;
        }
        if (ready.isEmpty()) {
            return;
        }
        Long canaryPercent = plan.extension().canaryTrafficPercent();
        if (canaryPercent != null && !canaries.isEmpty()) {
            context.advice.add("spec.predictor.canaryTrafficPercent has no effect beside spec.canary");
            canaryPercent = null;
        }
        int percent = canaryPercent == null ? 100 : (int) Math.max(0, Math.min(100, canaryPercent));
        if (percent < 100
                && ready.equals(rolledOut)
                && ready.equals(created)
                && !previous.isEmpty()
                && !previous.equals(ready)) {
            // The percentage was lowered after the newest revision had all traffic: share with the one before again.
            rolledOut = previous;
        }
        if (rolledOut.isEmpty() || rolledOut.equals(ready)) {
            desired.put(ready, 100);
        } else {
            int share = gradual(percent);
            desired.put(ready, share);
            if (share < 100) {
                desired.put(rolledOut, 100 - share);
            }
        }
        if (desired.get(ready) == 100 && !ready.equals(rolledOut) && revisions.isReady(ready)) {
            previous = rolledOut;
            rolledOut = ready;
            status.remove("rollout");
        }
    }

    /**
     * The newest revision's share at this moment of a gradual rollout ({@code serving.knative.dev/rollout-duration}) to
     * {@code goal}. The share grows linearly from the start time in the status; a changed goal starts again from the
     * current share.
     */
    private int gradual(int goal) {
        if (rolloutDuration.toMillis() == 0) {
            return goal;
        }
        JsonNode last = before.path("rollout");
        int from = 0;
        Instant start = now.truncatedTo(ChronoUnit.SECONDS);
        if (last.path("revisionName").asText().equals(ready)) {
            int to = last.path("to").asInt();
            Instant began = Instant.parse(last.path("startTime").asText());
            if (to == goal) {
                from = last.path("from").asInt();
                start = began;
            } else {
                from = percentBefore(ready);
            }
        }
        int share = goal;
        if (goal > from) {
            double part = (double) Duration.between(start, now).toMillis() / rolloutDuration.toMillis();
            share = (int) Math.min(goal, Math.max(Math.max(1, from), from + Math.floor((goal - from) * part)));
        }
        if (share < goal) {
            Duration step = rolloutDuration.dividedBy(goal - from);
            requeue = sooner(requeue, step.compareTo(Duration.ofSeconds(1)) < 0 ? Duration.ofSeconds(1) : step);
        }
        status.putObject("rollout")
                .put("revisionName", ready)
                .put("from", from)
                .put("to", goal)
                .put("startTime", time(start));
        return share;
    }

    /**
     * The targets that receive traffic now: only ready revisions. When none of the desired revisions is ready, the last
     * targets stay, so that a restarting service keeps its route. The shares of revisions that are not ready go to the
     * others in proportion.
     */
    private List<Target> targets() {
        Map<String, Integer> shares = new LinkedHashMap<>();
        desired.forEach((revision, percent) -> {
            if (revisions.isReady(revision)) {
                shares.put(revision, percent);
            }
        });
        if (shares.isEmpty()) {
            for (JsonNode one : before.path("traffic")) {
                String name = revisions.known(one.path("revisionName").asText());
                if (!name.isEmpty()
                        && canaries.stream()
                                .noneMatch(canary -> canary.revision().equals(name))) {
                    shares.merge(name, one.path("percent").asInt(), Integer::sum);
                }
            }
        }
        return withCanaries(shares);
    }

    /**
     * Scales the shares to what the canaries leave; the last share takes the rounding error. Shares that already have that
     * sum, such as those of the last plan, stay as they are.
     */
    private List<Target> withCanaries(Map<String, Integer> shares) {
        if (shares.isEmpty()) {
            return List.of();
        }
        List<CanaryShare> answering = canaries.stream()
                .filter(one -> !one.revision().isEmpty() && revisions.isReady(one.revision()))
                .filter(one -> !shares.containsKey(one.revision()))
                .toList();
        int rest = 100 - answering.stream().mapToInt(CanaryShare::percent).sum();
        List<Target> targets = new ArrayList<>();
        boolean tags = "true".equals(annotation("serving.kserve.io/enable-tag-routing"));
        int sum = shares.values().stream().mapToInt(Integer::intValue).sum();
        int left = rest;
        int index = 0;
        for (Map.Entry<String, Integer> one : shares.entrySet()) {
            int percent = ++index == shares.size() ? left : one.getValue() * rest / Math.max(1, sum);
            left -= percent;
            String tag = null;
            if (one.getKey().equals(ready) && rolledBack == null) {
                tag = tags ? "latest" : null;
            } else if (shares.size() > 1 && one.getKey().equals(rolledOut)) {
                tag = "prev";
            }
            targets.add(new Target(one.getKey(), percent, tag));
        }
        answering.forEach(one -> targets.add(new Target(one.revision(), one.percent(), one.name())));
        return List.copyOf(targets);
    }

    /** All revisions that must run: the current one, those with a desired or actual share, and the canaries. */
    private Set<String> running(List<Target> targets) {
        Set<String> running = new LinkedHashSet<>();
        if (rolledBack == null && !created.isEmpty()) {
            running.add(created);
        }
        running.addAll(desired.keySet());
        targets.forEach(one -> running.add(one.revision()));
        canaries.stream()
                .map(CanaryShare::revision)
                .filter(one -> !one.isEmpty())
                .forEach(running::add);
        return running;
    }

    private List<Target> mirrors() {
        Double percent = number("nereid.io/mirror-percent");
        if (percent == null || percent <= 0) {
            return List.of();
        }
        int part = (int) Math.min(100, Math.ceil(percent));
        List<Target> mirrors = new ArrayList<>();
        if (rolledBack == null && desired.size() > 1 && revisions.isReady(ready)) {
            mirrors.add(new Target(ready, part, null));
        }
        for (CanaryShare one : canaries) {
            if (!one.revision().isEmpty() && revisions.isReady(one.revision())) {
                mirrors.add(new Target(one.revision(), part, null));
            }
        }
        return List.copyOf(mirrors);
    }

    /**
     * Scales canaries to their percentage of the stable predictor's replicas, rounded up, and the stable predictor to
     * as many fewer as canary replicas are ready, so that the total stays the same.
     */
    private Workload scaled(Workload workload) {
        if (canaries.isEmpty() || plan.template() == null) {
            return workload;
        }
        Scaling stable = plan.template().scaling();
        for (CanaryShare one : canaries) {
            if (one.revision().equals(workload.revision()) && !one.revision().equals(created)) {
                Integer own = one.plan().extension().minReplicas();
                int replicas = own == null ? Math.max(1, (stable.min() * one.percent() + 99) / 100) : own;
                Scaling scaling = workload.scaling();
                return WorkloadCodec.scaled(
                        workload,
                        new Scaling(
                                replicas,
                                replicas,
                                scaling.metric(),
                                scaling.target(),
                                replicas == 0 ? "kpa" : "none",
                                scaling.settings()));
            }
        }
        int less = canaries.stream()
                .filter(one -> !one.revision().isEmpty())
                .mapToInt(one -> revisions.state(one.revision()).replicas())
                .sum();
        Scaling scaling = workload.scaling();
        if (less == 0 || scaling.min() <= 1) {
            return workload;
        }
        return WorkloadCodec.scaled(
                workload,
                new Scaling(
                        Math.max(1, scaling.min() - less),
                        scaling.max(),
                        scaling.metric(),
                        scaling.target(),
                        scaling.autoscaler(),
                        scaling.settings()));
    }

    public static @Nullable Duration sooner(@Nullable Duration one, @Nullable Duration other) {
        if (one == null || other == null) {
            return one == null ? other : one;
        }
        return one.compareTo(other) <= 0 ? one : other;
    }

    private @Nullable Double number(String key) {
        String text = annotation(key);
        if (text == null) {
            return null;
        }
        try {
            double number = Double.parseDouble(text.strip());
            if (number >= 0 && Double.isFinite(number)) {
                return number;
            }
        } catch (NumberFormatException e) {
            // reported below
        }
        context.advice.add(key + ": \"" + text + "\" is ignored: expected a number of at least 0");
        return null;
    }

    /** Parses the annotation; zero without one, and for an invalid one, which is added to the advice. */
    private Duration rolloutDuration(@Nullable String text) {
        if (text == null) {
            return Duration.ZERO;
        }
        Duration found = GoDuration.parse(text);
        if (found == null || found.isNegative()) {
            context.advice.add("serving.knative.dev/rollout-duration: \"" + text
                    + "\" is ignored: expected a duration such as 380s or 10m");
            return Duration.ZERO;
        }
        return found;
    }
}
