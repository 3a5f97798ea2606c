// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.control;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.Main;
import io.nereid.base.Clock;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.admission.Admission;
import io.nereid.control.api.admission.AdmissionContext;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.apiserver.ApiServer;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.core.runtime.RuntimeSelection;
import io.nereid.control.kubernetes.crd.CustomResourceDefinitions;
import io.nereid.control.store.FileResourceStore;
import io.nereid.testing.kubernetes.TestCluster;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.server.Server;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import picocli.CommandLine;

/** A control API in this process and a cluster with the same definitions, and commands that run against one of them. */
final class BothTargets implements AutoCloseable {
    private static final ResourceStore.Type SERVICES = new ResourceStore.Type("serving.kserve.io", "inferenceservices");

    private final Path directory;
    private final TestCluster cluster;
    private final ResourceStore store;
    private final ApiServer api;
    private final Server server;
    private final String url;

    /**
     * What a command printed.
     *
     * @param code its exit code
     */
    record Result(int code, String out, String err) {}

    /** Starts both; the test is skipped where no cluster can be started. */
    BothTargets(Path directory) throws IOException {
        String why = TestCluster.unavailable().orElse("");
        assumeTrue(why.isEmpty(), why);
        this.directory = directory;
        cluster = TestCluster.start(directory.resolve("cluster"));
        cluster.define(CustomResourceDefinitions.all().stream()
                .map(ObjectNode::toString)
                .toList());
        store = FileResourceStore.open(directory.resolve("store"), Clock.system());
        api = new ApiServer(
                store,
                new Admission(AdmissionContext.NONE),
                new ApiServer.Options(
                        "test",
                        Clock.system(),
                        (namespace, service, component, most) -> List.of(),
                        service -> RuntimeSelection.of(InferenceService.read(service), RuntimeCatalog.builtIn())));
        server = new Server(
                ServerOptions.builder().listen("127.0.0.1", 0).eventLoops(1).build(), List.of(api));
        url = "http://127.0.0.1:" + server.start().get(0).getPort();
    }

    TestCluster cluster() {
        return cluster;
    }

    /** Runs a command on the control API of this process. */
    Result local(String... words) {
        return run(words, "--server", url);
    }

    /** Runs a command on the cluster. */
    Result remote(String... words) {
        return run(words, "--kubeconfig", cluster.kubeconfig().toString());
    }

    /** Runs a command. */
    static Result run(String[] words, String... target) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        CommandLine command = Main.commandLine();
        command.setOut(new PrintWriter(out, true));
        command.setErr(new PrintWriter(err, true));
        String[] all = Arrays.copyOf(words, words.length + target.length);
        System.arraycopy(target, 0, all, words.length, target.length);
        int code = command.execute(all);
        return new Result(code, out.toString(), err.toString());
    }

    /** Writes a file and returns its path. */
    String file(String name, String text) throws IOException {
        Path path = directory.resolve(name);
        Files.createDirectories(path.getParent());
        Files.writeString(path, text);
        return path.toString();
    }

    /** Gives a service of the namespace {@code default} the same status on both targets. */
    void status(String service, ObjectNode status) throws IOException {
        ResourceStore.Key key = new ResourceStore.Key(SERVICES, "default", service);
        ObjectNode stored = store.get(key);
        assertThat(stored).isNotNull();
        stored.set("status", status);
        store.update(SERVICES, stored, null);
        cluster.kubectl(
                "patch", "isvc", service, "--subresource=status", "--type=merge", "-p", "{\"status\":" + status + "}");
    }

    /** Gives a service of the namespace {@code default} the same event on both targets. */
    void event(String service, String type, String reason, String message) throws IOException {
        ResourceStore.Type events = new ResourceStore.Type("", "events");
        ObjectNode event = ControlClient.JSON.createObjectNode();
        event.put("apiVersion", "v1").put("kind", "Event");
        event.putObject("metadata").put("name", service + "." + reason).put("namespace", "default");
        event.putObject("involvedObject")
                .put("kind", "InferenceService")
                .put("namespace", "default")
                .put("name", service);
        event.put("type", type).put("reason", reason).put("message", message);
        event.put("lastTimestamp", "2026-01-02T03:04:05Z").put("count", 3);
        store.create(events, event.deepCopy());
        cluster.kubectl("create", "-f", file(service + "." + reason + ".json", event.toString()));
    }

    @Override
    public void close() {
        api.close();
        server.close();
        store.close();
        cluster.close();
    }
}
