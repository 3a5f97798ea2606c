// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver;

import io.nereid.base.Clock;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.admission.Admission;
import io.nereid.control.api.admission.AdmissionContext;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.control.core.WorkloadObserver;
import io.nereid.control.core.WorkloadState;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.core.runtime.RuntimeSelection;
import io.nereid.control.store.FileResourceStore;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.api.access.LocalAccessPolicy;
import io.nereid.transport.server.Server;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;

/** An API server over a store on disk, on a free port. */
final class TestApiServer implements AutoCloseable {
    private static final String DEFINITION = """
            apiVersion: apiextensions.k8s.io/v1
            kind: CustomResourceDefinition
            metadata: {name: inferenceservices.serving.kserve.io}
            spec: {group: serving.kserve.io, names: {kind: InferenceService, plural: inferenceservices}, versions: [{name: v1beta1}]}
            """;

    final ResourceStore store;
    /** The states of the workloads of all services, by revision. */
    final Map<String, WorkloadState> states = new ConcurrentSkipListMap<>();
    /** The log lines by revision. */
    final Map<String, List<String>> lines = new ConcurrentHashMap<>();

    private final ApiServer api;
    private final Server server;
    private final int port;

    TestApiServer(Path directory) {
        store = FileResourceStore.open(directory, Clock.system());
        api = new ApiServer(
                store,
                new Admission(AdmissionContext.NONE),
                new ApiServer.Options(
                        "test",
                        Clock.system(),
                        (namespace, service, component, most) -> List.of("first of " + service, "last of " + component),
                        service -> RuntimeSelection.of(InferenceService.read(service), RuntimeCatalog.builtIn()),
                        new WorkloadObserver() {
                            @Override
                            public Map<String, WorkloadState> observe(String namespace, String service) {
                                Map<String, WorkloadState> of = new TreeMap<>(states);
                                of.keySet().removeIf(revision -> !revision.startsWith(service + "-"));
                                return of;
                            }

                            @Override
                            public List<String> logs(String namespace, String revision, int most) {
                                List<String> all = lines.getOrDefault(revision, List.of());
                                return List.copyOf(all.subList(Math.max(0, all.size() - most), all.size()));
                            }
                        },
                        service -> List.of(),
                        ManifestReader.parse(DEFINITION, "definition")));
        server = new Server(
                ServerOptions.builder()
                        .listen("127.0.0.1", 0)
                        .eventLoops(1)
                        .access(new LocalAccessPolicy(false, Set.of("models.example")))
                        .build(),
                List.of(api));
        port = server.start().get(0).getPort();
    }

    int port() {
        return port;
    }

    /** The number of requests in flight. */
    long inFlight() {
        return server.stats().inFlight();
    }

    String url() {
        return "http://localhost:" + port;
    }

    @Override
    public void close() {
        api.close();
        server.close();
        store.close();
    }
}
