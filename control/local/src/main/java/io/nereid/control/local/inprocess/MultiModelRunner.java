// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.inprocess;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import io.nereid.control.api.InferenceService.StorageUri;
import io.nereid.control.api.TrainedModel;
import io.nereid.control.core.ObservedState.Failure;
import io.nereid.control.core.Workload;
import io.nereid.control.core.trainedmodel.TrainedModelPlan.Phase;
import io.nereid.control.core.trainedmodel.TrainedModelPlan.State;
import io.nereid.control.gateway.upstream.RevisionTarget;
import io.nereid.control.local.spi.ArtifactFetcher;
import io.nereid.control.local.workload.FailureMessages;
import io.nereid.control.local.workload.RevisionLog;
import io.nereid.control.local.workload.ServiceRouting;
import io.nereid.control.local.workload.WorkloadRunner;
import io.nereid.control.plane.loop.EventLoop;
import io.nereid.repository.ManagedModel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

/**
 * Runs a service with many models in the engine: loads its TrainedModels, follows their list, and serves each under its
 * own name. It is ready when the models of its first list are loaded or have failed. One that fails concerns the others in
 * no way, and is tried again each minute. Confined to the event loop thread.
 */
public final class MultiModelRunner implements WorkloadRunner {
    /** Time in which admitted requests reach the engine, before their model is unloaded. */
    private static final Duration TRANSIT_TIME = Duration.ofMillis(100);

    private static final Duration RETRY = Duration.ofMinutes(1);

    private final EventLoop loop;
    private final ModelDeployer deployer;
    private final ArtifactFetcher artifacts;
    private final EngineTrainedModels trained;
    private final Workload workload;
    private final RevisionLog log;
    private final Runnable changed;
    private final String prefix;
    private final Map<String, Loaded> models = new LinkedHashMap<>();
    /** Models that are being unloaded. */
    private final List<Loaded> ending = new ArrayList<>();

    private int desired;
    /** Whether the list of models is known. */
    private boolean known;
    /** Whether the models of the first list are loaded or have failed. */
    private boolean settled;

    private @Nullable Runnable ended;

    /** One model. */
    private final class Loaded {
        final String name;
        TrainedModel model;
        State state = new State(Phase.LOADING, "");
        ArtifactFetcher.@Nullable Lease lease;
        /** The files that may serve until those of the lease do. */
        final List<ArtifactFetcher.Lease> former = new ArrayList<>();

        @Nullable CompletableFuture<ArtifactFetcher.Lease> fetching;

        @Nullable ManagedModel spec;

        /** Whether the specification is that of the model as it is described now. */
        boolean current;

        boolean deployed;
        /** Whether the failure of this deployment is known. */
        boolean failing;

        EventLoop.Timer timer = EventLoop.Timer.NONE;

        Loaded(TrainedModel model) {
            this.name = prefix + "/" + model.name();
            this.model = model;
        }
    }

    public MultiModelRunner(
            EventLoop loop,
            ModelDeployer deployer,
            ArtifactFetcher artifacts,
            EngineTrainedModels trained,
            Workload workload,
            ServiceRouting.Activator activator,
            RevisionLog log,
            Runnable changed) {
        this.loop = loop;
        this.deployer = deployer;
        this.artifacts = artifacts;
        this.trained = trained;
        this.workload = workload;
        this.log = log;
        this.changed = changed;
        this.prefix = workload.namespace() + "/" + workload.revision();
        activator.destination(new RevisionTarget.Models(prefix, true, workload.modelName()));
        List<TrainedModel> first = trained.join(workload.namespace(), workload.service(), this);
        if (first != null) {
            models(first);
        }
    }

    /** Takes the models that the service shall have. */
    void models(List<TrainedModel> list) {
        if (ended != null) {
            return;
        }
        known = true;
        Map<String, TrainedModel> wanted = new LinkedHashMap<>();
        list.forEach(model -> wanted.put(model.name(), model));
        for (Loaded one : List.copyOf(models.values())) {
            if (!wanted.containsKey(one.model.name())) {
                models.remove(one.model.name());
                trained.forget(workload.namespace(), workload.service(), one.model.name());
                log.add("the model " + one.model.name() + " is removed");
                close(one);
            }
        }
        wanted.forEach((name, model) -> {
            Loaded there = models.get(name);
            if (there == null) {
                Loaded made = new Loaded(model);
                models.put(name, made);
                fetch(made);
            } else if (!there.model.storageUri().equals(model.storageUri())
                    || !there.model.framework().equals(model.framework())) {
                there.model = model;
                fetch(there);
            }
        });
        settle();
    }

    private void fetch(Loaded one) {
        one.timer.cancel();
        one.current = false;
        CompletableFuture<ArtifactFetcher.Lease> before = one.fetching;
        if (before != null) {
            boolean unused = before.cancel(false);
        }
        log.add("fetching " + one.model.storageUri() + " for the model " + one.model.name());
        CompletableFuture<ArtifactFetcher.Lease> future;
        try {
            future = artifacts
                    .fetch(artifact(one), workload.namespace(), log::add)
                    .toCompletableFuture();
        } catch (RuntimeException e) {
            future = CompletableFuture.failedFuture(e);
        }
        CompletableFuture<ArtifactFetcher.Lease> mine = future;
        one.fetching = mine;
        var unused = mine.whenComplete((lease, e) -> loop.execute(() -> fetched(one, mine, lease, e)));
    }

    private static Workload.Artifact artifact(Loaded one) {
        return new Workload.Artifact(one.model.storageUri(), StorageUri.MODELS, null, Map.of(), null, null);
    }

    private void fetched(
            Loaded one,
            CompletableFuture<ArtifactFetcher.Lease> of,
            ArtifactFetcher.@Nullable Lease lease,
            @Nullable Throwable e) {
        if (one.fetching != of || models.get(one.model.name()) != one) {
            if (lease != null) {
                lease.close();
            }
            return;
        }
        one.fetching = null;
        if (lease == null) {
            fail(
                    one,
                    FailureMessages.text(e instanceof CompletionException && e.getCause() != null ? e.getCause() : e));
            return;
        }
        Workload described = workloadOf(one);
        loop.supply(
                () -> ManagedModelBuilder.build(
                        described, (Workload.Model) described.form(), List.of(lease.path()), new ArrayList<>()),
                (result, error) -> {
                    if (models.get(one.model.name()) != one) {
                        lease.close();
                        return;
                    }
                    if (result == null) {
                        lease.close();
                        fail(one, FailureMessages.text(error));
                        return;
                    }
                    ArtifactFetcher.Lease before = one.lease;
                    if (before != null && before.path().equals(lease.path())) {
                        before.close();
                    } else if (before != null) {
                        one.former.add(before);
                    }
                    one.lease = lease;
                    one.spec = result.model();
                    one.current = true;
                    deploy(one);
                });
    }

    private Workload workloadOf(Loaded one) {
        Workload.Model own = (Workload.Model) workload.form();
        Workload.Model form = new Workload.Model(
                List.of(artifact(one)),
                one.model.framework(),
                null,
                own.protocol(),
                own.runtime(),
                List.of("--model_name=" + one.model.name()),
                own.environment(),
                JsonNodeFactory.instance.objectNode());
        return new Workload(
                workload.namespace(),
                workload.service(),
                workload.component(),
                workload.revision() + "/" + one.model.name(),
                one.model.name(),
                form,
                workload.scaling(),
                0,
                workload.timeout(),
                null,
                null,
                Map.of(),
                Map.of());
    }

    private void deploy(Loaded one) {
        ManagedModel spec = one.spec;
        if (spec != null && desired > 0) {
            // A model of this name that is still being unloaded is brought back with the files of this one.
            for (Loaded former : List.copyOf(ending)) {
                if (former.name.equals(one.name)) {
                    ending.remove(former);
                    release(former);
                }
            }
            boolean rejected = one.deployed && deployer.rejection(one.name) != null;
            one.deployed = true;
            one.failing = false;
            deployer.deploy(spec.withInstances(desired), () -> engineChanged(one));
            if (rejected) {
                // The engine says nothing about files that it has rejected before; it does about others.
                retryLater(one);
            } else {
                state(one);
            }
        }
    }

    private void engineChanged(Loaded one) {
        if (ending.contains(one)) {
            if (deployer.isUnloaded(one.name)) {
                ending.remove(one);
                deployer.forget(one.name);
                release(one);
                finish();
            }
            return;
        }
        if (!one.deployed) {
            return;
        }
        if (deployer.available(one.name) && deployer.rejection(one.name) == null && one.current) {
            closeFormer(one);
        }
        state(one);
    }

    /** Takes the state of a deployed model from the engine. */
    private void state(Loaded one) {
        boolean available = deployer.available(one.name);
        String reason = available ? deployer.rejection(one.name) : deployer.failure(one.name);
        if (reason != null) {
            if (!one.failing) {
                one.failing = true;
                fail(one, reason);
            }
        } else if (available && one.current) {
            one.failing = false;
            one.timer.cancel();
            set(one, new State(Phase.LOADED, ""));
        }
    }

    private void fail(Loaded one, String reason) {
        String text = one.deployed && deployer.available(one.name) ? reason + "; the former model serves on" : reason;
        log.add("the model " + one.model.name() + " cannot be loaded: " + text + "; tried again in " + RETRY.toSeconds()
                + " s");
        retryLater(one);
        set(one, new State(Phase.FAILED, text));
    }

    /** What serves meanwhile stays deployed. */
    private void retryLater(Loaded one) {
        one.timer.cancel();
        one.timer = loop.after(RETRY, () -> {
            if (one.deployed && deployer.available(one.name)) {
                fetch(one);
                return;
            }
            if (one.deployed) {
                one.deployed = false;
                deployer.undeploy(one.name);
            }
            again(one);
        });
    }

    /** Fetches and deploys a model again as soon as the engine has forgotten it. */
    private void again(Loaded one) {
        if (models.get(one.model.name()) != one) {
            return;
        }
        if (deployer.isUnloaded(one.name)) {
            fetch(one);
        } else {
            one.timer = loop.after(TRANSIT_TIME, () -> again(one));
        }
    }

    private void set(Loaded one, State state) {
        if (!state.equals(one.state)) {
            one.state = state;
            if (state.phase() == Phase.LOADED) {
                log.add("the model " + one.model.name() + " is ready");
            }
        }
        trained.report(workload.namespace(), workload.service(), one.model.name(), state);
        settle();
    }

    private void settle() {
        if (known && !settled && models.values().stream().allMatch(one -> one.state.phase() != Phase.LOADING)) {
            settled = true;
        }
        changed.run();
    }

    private void close(Loaded one) {
        one.timer.cancel();
        CompletableFuture<ArtifactFetcher.Lease> fetching = one.fetching;
        if (fetching != null) {
            boolean unused = fetching.cancel(false);
        }
        if (!one.deployed) {
            release(one);
            return;
        }
        one.deployed = false;
        ending.add(one);
        EventLoop.Timer unused = loop.after(TRANSIT_TIME, () -> {
            // A model of the same name may have been added since.
            if (ending.contains(one)) {
                deployer.undeploy(one.name);
                engineChanged(one);
            }
        });
    }

    private static void release(Loaded one) {
        if (one.lease != null) {
            one.lease.close();
            one.lease = null;
        }
        closeFormer(one);
    }

    private static void closeFormer(Loaded one) {
        one.former.forEach(ArtifactFetcher.Lease::close);
        one.former.clear();
    }

    @Override
    public int maxReplicas() {
        return Integer.MAX_VALUE;
    }

    @Override
    public void scale(int replicas) {
        desired = replicas;
        for (Loaded one : models.values()) {
            if (replicas > 0) {
                deploy(one);
            } else if (one.deployed) {
                one.deployed = false;
                EventLoop.Timer unused = loop.after(TRANSIT_TIME, () -> {
                    if (desired == 0) {
                        deployer.undeploy(one.name);
                    }
                });
            }
        }
        changed.run();
    }

    /** From zero, requests wait until their models are there again. */
    @Override
    public int ready() {
        boolean back = models.values().stream()
                .allMatch(one -> one.state.phase() != Phase.LOADED || deployer.available(one.name));
        return settled && back ? desired : 0;
    }

    @Override
    public @Nullable Failure failure() {
        return null;
    }

    @Override
    public boolean failing() {
        return false;
    }

    @Override
    public void end(Runnable then) {
        trained.leave(workload.namespace(), workload.service(), this);
        ended = then;
        desired = 0;
        List<Loaded> all = List.copyOf(models.values());
        models.clear();
        all.forEach(this::close);
        finish();
    }

    private void finish() {
        Runnable end = ended;
        if (end != null && ending.isEmpty()) {
            ended = () -> {};
            end.run();
        }
    }

    /** Whether a workload is a service with many models: it has no files of its own. */
    public static boolean runs(Workload workload) {
        return workload.form() instanceof Workload.Model model
                && model.artifacts().isEmpty();
    }
}
