// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import io.nereid.base.ServingException;
import io.nereid.control.core.Workload;
import io.nereid.control.local.inprocess.EngineTrainedModels;
import io.nereid.control.local.inprocess.InProcessRunner;
import io.nereid.control.local.inprocess.ModelDeployer;
import io.nereid.control.local.inprocess.ModelRunner;
import io.nereid.control.local.inprocess.MultiModelRunner;
import io.nereid.control.local.process.PortAllocator;
import io.nereid.control.local.process.ProcessRunner;
import io.nereid.control.local.process.ProcessSupervisor;
import io.nereid.control.local.process.TransformerArtifacts;
import io.nereid.control.local.spi.ArtifactFetcher;
import io.nereid.control.local.spi.InProcessComponents;
import io.nereid.control.local.spi.LocalSettings;
import io.nereid.control.local.workload.GpuGrants;
import io.nereid.control.local.workload.RevisionLog;
import io.nereid.control.local.workload.ServiceRouting;
import io.nereid.control.local.workload.WorkloadRunner;
import io.nereid.control.plane.loop.EventLoop;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Supplier;

/**
 * Creates the runner of a workload by its form: a model runs in the engine, an explainer or a jar in this process, and
 * everything else in child processes. Confined to the event loop thread.
 */
final class WorkloadRunners implements WorkloadRunner.Factory {
    private final EventLoop loop;
    private final LocalSettings settings;
    private final ArtifactFetcher artifacts;
    private final InProcessComponents components;
    private final ServiceRouting routing;
    private final ModelDeployer deployer;
    private final EngineTrainedModels trained;
    private final ProcessSupervisor supervisor;
    private final PortAllocator ports;
    private final GpuGrants gpus;

    WorkloadRunners(
            EventLoop loop,
            LocalSettings settings,
            ArtifactFetcher artifacts,
            InProcessComponents components,
            ServiceRouting routing,
            ModelDeployer deployer,
            EngineTrainedModels trained,
            ProcessSupervisor supervisor) {
        this.loop = loop;
        this.settings = settings;
        this.artifacts = artifacts;
        this.components = components;
        this.routing = routing;
        this.deployer = deployer;
        this.trained = trained;
        this.supervisor = supervisor;
        this.ports = new PortAllocator(settings.firstPort(), settings.lastPort());
        this.gpus = new GpuGrants(settings.gpus());
    }

    @Override
    public WorkloadRunner runner(
            Workload workload,
            List<Path> files,
            ServiceRouting.Activator activator,
            RevisionLog log,
            Runnable changed) {
        if (MultiModelRunner.runs(workload)) {
            return new MultiModelRunner(loop, deployer, artifacts, trained, workload, activator, log, changed);
        }
        if (workload.form() instanceof Workload.Model) {
            return new ModelRunner(loop, deployer, gpus, workload, files, activator, log, changed);
        }
        if (workload.form() instanceof Workload.Process) {
            if (workload.component() == Workload.Component.PREDICTOR) {
                trained.runsOutside(workload.namespace(), workload.service());
            }
            return new ProcessRunner(
                    loop,
                    supervisor,
                    settings,
                    routing,
                    ports,
                    gpus,
                    workload,
                    artifacts,
                    files,
                    activator,
                    log,
                    changed);
        }
        if (workload.form() instanceof Workload.Transformer form) {
            return transformer(workload, form, files, activator, log, changed);
        }
        warnSingleInstance(workload, log);
        return new InProcessRunner(
                loop,
                "explainer",
                () -> components.explainer(workload, (Workload.Explainer) workload.form(), files),
                activator,
                log,
                changed);
    }

    /** Warns that an in-asProcess component has a single instance when more replicas are configured. */
    private static void warnSingleInstance(Workload workload, RevisionLog log) {
        if (workload.scaling().min() > 1) {
            log.add("warning: minReplicas " + workload.scaling().min()
                    + " has no effect: one instance inside the server process serves all requests");
        }
    }

    /** Creates the runner of a transformer: a jar runs in this process, a Python file in child processes. */
    private WorkloadRunner transformer(
            Workload workload,
            Workload.Transformer form,
            List<Path> files,
            ServiceRouting.Activator activator,
            RevisionLog log,
            Runnable changed) {
        Supplier<InProcessComponents.RunningComponent> factory;
        try {
            Path file = TransformerArtifacts.find(form, files);
            if (TransformerArtifacts.isPython(file)) {
                Workload asProcess = TransformerArtifacts.process(workload, form, file, settings.directory(), log::add);
                return new ProcessRunner(
                        loop,
                        supervisor,
                        settings,
                        routing,
                        ports,
                        gpus,
                        asProcess,
                        artifacts,
                        files,
                        activator,
                        log,
                        changed);
            }
            warnSingleInstance(workload, log);
            factory = () -> components.transformer(workload, form, file);
        } catch (ServingException e) {
            factory = () -> {
                throw e;
            };
        }
        return new InProcessRunner(loop, "transformer", factory, activator, log, changed);
    }
}
