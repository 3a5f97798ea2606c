// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.core.Observed.State;
import io.nereid.control.core.Observed.Traffic;
import io.nereid.control.core.Plan.Event;
import io.nereid.control.core.Route.Backend;
import io.nereid.control.core.Route.Target;
import io.nereid.control.core.Workload.Scaling;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Which revisions of one component run, and who of them answers how much. The bookkeeping is KServe's on Knative: the revision
 * that had everything last is remembered, and one before it, so that promoting and rolling back are changes of one number. What
 * is remembered stands in the component's status. Confined to one call of the planner.
 */
final class Rollout {
    /** How often a canary's requests are looked at. */
    private static final Duration WATCH = Duration.ofSeconds(10);

    private final Scene scene;
    private final Draft draft;
    private final List<Share> canaries;
    private final Revisions revisions;
    private final JsonNode before;
    private final Instant now;
    private final List<Event> events;
    private final ObjectNode status = JsonNodeFactory.instance.objectNode();
    private final Map<String, Integer> desired = new LinkedHashMap<>();
    private final String created;
    private String ready = "";
    private String rolledOut;
    private String previous;
    private @Nullable Duration requeue;
    private @Nullable String rolledBack;

    /** A canary of {@code spec.canary}. */
    record Share(String name, Draft draft, int percent, String revision) {}

    /**
     * What came of it.
     *
     * @param created the revision of the present specification; empty for none
     * @param ready whether it answers, or has answered and was not replaced
     * @param state how it is, or the one that answers in its stead when it was taken back
     * @param backend null when nothing answers
     * @param status the component's status, without URLs
     * @param rolledBack why the newest revision was taken back; null when it was not
     * @param canaries those of {@code spec.canary}
     * @param canaryStates how they are, by name
     * @param answering whether a revision with a share is ready now
     */
    record Outcome(
            Draft draft,
            String created,
            boolean ready,
            State state,
            @Nullable Backend backend,
            List<Workload> workloads,
            List<Revision> revisions,
            ObjectNode status,
            @Nullable String rolledBack,
            List<Share> canaries,
            Map<String, State> canaryStates,
            boolean answering,
            @Nullable Duration requeue) {
        /** How a canary is. */
        State canaryState(Share canary) {
            return Objects.requireNonNull(canaryStates.get(canary.name()));
        }

        /** Whether a canary answers. */
        boolean canaryReady(Share canary) {
            Observed.Phase phase = canaryState(canary).phase();
            return phase == Observed.Phase.READY || phase == Observed.Phase.STANDBY;
        }
    }

    Rollout(
            Scene scene,
            Draft draft,
            Map<String, Map.Entry<Draft, Integer>> canaryDrafts,
            Revisions revisions,
            JsonNode before,
            Instant now,
            List<Event> events) {
        this.scene = scene;
        this.draft = draft;
        this.revisions = revisions;
        this.before = before;
        this.now = now;
        this.events = events;
        Revision current = revisions.current(draft);
        this.created = current == null ? "" : current.name();
        List<Share> all = new ArrayList<>();
        canaryDrafts.forEach((name, one) -> {
            Revision revision = revisions.current(one.getKey());
            all.add(new Share(name, one.getKey(), one.getValue(), revision == null ? "" : revision.name()));
        });
        this.canaries = List.copyOf(all);
        this.rolledOut = revisions.known(before.path("latestRolledoutRevision").asText());
        this.previous = revisions.known(before.path("previousRolledoutRevision").asText());
    }

    Outcome plan() {
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
        Map<String, State> canaryStates = new LinkedHashMap<>();
        canaries.forEach(one -> canaryStates.put(one.name(), revisions.state(one.revision())));
        Backend backend =
                targets.isEmpty() ? null : new Backend(targets, mirrors(), annotation("nereid.io/sticky-header"));
        return new Outcome(
                draft,
                created,
                !created.isEmpty()
                        && created.equals(ready)
                        && !(revisions.state(created).phase() == Observed.Phase.FAILED),
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
        String own = draft.extension().annotations().get(key);
        return own == null ? scene.annotation(key) : own;
    }

    /** The newest revision that became ready; one that was stays it until another one is. */
    private void findReady() {
        String last = revisions.known(before.path("latestReadyRevision").asText());
        if (!created.isEmpty() && revisions.isReady(created)) {
            ready = created;
        } else if (!last.isEmpty()) {
            ready = last;
        } else {
            Revision found = revisions.newestReady(
                    canaries.stream().map(one -> one.draft().base()).collect(Collectors.toSet()));
            ready = found == null ? "" : found.name();
        }
    }

    /** Takes a canary back that fails too much, or is too slow; it stays back until the specification changes. */
    private void checkHealth() {
        long generation = scene.service.metadata().generation();
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
            requeue = WATCH; // requests alone are no reason to plan
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
                    "its slowest hundredth of %d requests took more than %.0f ms, more than nereid.io/rollback-p99-ms allows (%s)",
                    traffic.requests(),
                    traffic.p99Millis(),
                    text(p99));
        }
        if (why != null) {
            requeue = null;
            rolledBack = "Revision " + created + " was taken back: " + why;
            status.putObject("rolledBack")
                    .put("revisionName", created)
                    .put("generation", generation)
                    .put("time", Conditions.time(now))
                    .put("message", rolledBack);
            events.add(new Event(
                    "Warning",
                    "RolledBack",
                    rolledBack + ". All requests go to " + rolledOut + "; change the specification to try again"));
        }
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

    /** Who should answer how much, were all of them ready. */
    private void share() {
        if (rolledBack != null) {
            desired.put(rolledOut, 100);
            return;
        }
        if (ready.isEmpty()) {
            return;
        }
        Long wanted = draft.extension().canaryTrafficPercent();
        if (wanted != null && !canaries.isEmpty()) {
            scene.advice.add("spec.predictor.canaryTrafficPercent has no effect beside spec.canary");
            wanted = null;
        }
        int percent = wanted == null ? 100 : (int) Math.max(0, Math.min(100, wanted));
        if (percent < 100
                && ready.equals(rolledOut)
                && ready.equals(created)
                && !previous.isEmpty()
                && !previous.equals(ready)) {
            rolledOut = previous; // the percentage was lowered after all had gone to the newest: back to the one before
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

    /** The share that the newest revision has come to on its way to {@code goal}. */
    private int gradual(int goal) {
        Duration duration = duration(annotation("serving.knative.dev/rollout-duration"));
        if (duration == null || duration.isZero()) {
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
            double part = (double) Duration.between(start, now).toMillis() / duration.toMillis();
            share = (int) Math.min(goal, Math.max(Math.max(1, from), from + Math.floor((goal - from) * part)));
        }
        if (share < goal) {
            Duration step = duration.dividedBy(goal - from);
            requeue = sooner(requeue, step.compareTo(Duration.ofSeconds(1)) < 0 ? Duration.ofSeconds(1) : step);
        }
        status.putObject("rollout")
                .put("revisionName", ready)
                .put("from", from)
                .put("to", goal)
                .put("startTime", Conditions.time(start));
        return share;
    }

    /** Who answers: those that are ready share what the others should have; nobody new takes over before he is. */
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
        int sum = shares.values().stream().mapToInt(Integer::intValue).sum();
        if (sum != 100 && !shares.isEmpty()) {
            String most = shares.keySet().iterator().next();
            for (Map.Entry<String, Integer> one : shares.entrySet()) {
                most = one.getValue() > shares.getOrDefault(most, 0) ? one.getKey() : most;
            }
            shares.merge(most, 100 - sum, Integer::sum);
        }
        return withCanaries(shares);
    }

    private List<Target> withCanaries(Map<String, Integer> shares) {
        if (shares.isEmpty()) {
            return List.of();
        }
        List<Share> answering = canaries.stream()
                .filter(one -> !one.revision().isEmpty() && revisions.isReady(one.revision()))
                .filter(one -> !shares.containsKey(one.revision()))
                .toList();
        int rest = 100 - answering.stream().mapToInt(Share::percent).sum();
        List<Target> targets = new ArrayList<>();
        boolean tags = "true".equals(annotation("serving.kserve.io/enable-tag-routing"));
        int left = rest;
        int index = 0;
        for (Map.Entry<String, Integer> one : shares.entrySet()) {
            int percent = ++index == shares.size() ? left : one.getValue() * rest / 100;
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

    private Set<String> running(List<Target> targets) {
        Set<String> running = new LinkedHashSet<>();
        if (rolledBack == null && !created.isEmpty()) {
            running.add(created);
        }
        running.addAll(desired.keySet());
        targets.forEach(one -> running.add(one.revision()));
        canaries.stream().map(Share::revision).filter(one -> !one.isEmpty()).forEach(running::add);
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
        for (Share one : canaries) {
            if (!one.revision().isEmpty() && revisions.isReady(one.revision())) {
                mirrors.add(new Target(one.revision(), part, null));
            }
        }
        return List.copyOf(mirrors);
    }

    /** The scale of canaries is a part of the stable predictor's, and the stable one does with as many less. */
    private Workload scaled(Workload workload) {
        if (canaries.isEmpty() || draft.template() == null) {
            return workload;
        }
        Scaling stable = draft.template().scaling();
        for (Share one : canaries) {
            if (one.revision().equals(workload.revision()) && !one.revision().equals(created)) {
                Integer own = one.draft().extension().minReplicas();
                int replicas = own == null ? Math.max(1, (stable.min() * one.percent() + 99) / 100) : own;
                Scaling scaling = workload.scaling();
                return WorkloadTrees.scaled(
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
        return WorkloadTrees.scaled(
                workload,
                new Scaling(
                        Math.max(1, scaling.min() - less),
                        scaling.max(),
                        scaling.metric(),
                        scaling.target(),
                        scaling.autoscaler(),
                        scaling.settings()));
    }

    static @Nullable Duration sooner(@Nullable Duration one, @Nullable Duration other) {
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
            // told below
        }
        scene.advice.add(key + ": \"" + text + "\" is left out: expected a number of at least 0");
        return null;
    }

    private @Nullable Duration duration(@Nullable String text) {
        if (text == null) {
            return null;
        }
        Duration found = GoDurations.parse(text);
        if (found == null) {
            scene.advice.add("serving.knative.dev/rollout-duration: \"" + text
                    + "\" is left out: expected a duration such as 380s or 10m");
        }
        return Objects.requireNonNullElse(found, Duration.ZERO);
    }
}
