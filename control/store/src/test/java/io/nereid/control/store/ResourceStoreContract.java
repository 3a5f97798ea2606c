// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.api.store.ResourceStore.Change;
import io.nereid.control.api.store.ResourceStore.Key;
import io.nereid.control.api.store.ResourceStore.Type;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The contract that every resource store fulfils. */
abstract class ResourceStoreContract {
    static final Type SERVICES = new Type("serving.kserve.io", "inferenceservices");
    static final Type SECRETS = new Type("", "secrets");

    private static final ObjectMapper JSON = new ObjectMapper();

    private ResourceStore store;

    /** An empty store. */
    abstract ResourceStore emptyStore() throws Exception;

    @BeforeEach
    void open() throws Exception {
        store = emptyStore();
    }

    @AfterEach
    void close() {
        store.close();
    }

    static ObjectNode resource(String namespace, String name, String value) {
        ObjectNode node = JSON.createObjectNode();
        node.withObject("/metadata").put("namespace", namespace).put("name", name);
        node.withObject("/spec").put("value", value);
        return node;
    }

    static Key key(String namespace, String name) {
        return new Key(SERVICES, namespace, name);
    }

    private static String version(ObjectNode resource) {
        return resource.path("metadata").path("resourceVersion").asText();
    }

    static void assertRejected(ErrorCode code, String text, ThrowingCallable call) {
        assertThatThrownBy(call).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(code);
            assertThat(e.getMessage()).contains(text);
        });
    }

    @Test
    void aCreatedResourceHasUidTimeAndVersion() {
        ObjectNode given = resource("a", "x", "1");
        ObjectNode created = store.create(SERVICES, given);
        assertThat(created.path("metadata").path("uid").asText()).hasSize(36);
        assertThat(created.path("metadata").path("creationTimestamp").asText())
                .matches("\\d{4}-.*T\\d\\d:\\d\\d:\\d\\dZ");
        assertThat(Long.parseLong(version(created))).isPositive();
        assertThat(store.get(key("a", "x"))).isEqualTo(created);
        assertThat(store.get(key("b", "x"))).isNull();
        assertThat(given).isEqualTo(resource("a", "x", "1"));
    }

    @Test
    void treesAreCopiedInAndOut() {
        ObjectNode given = resource("a", "x", "1");
        ObjectNode created = store.create(SERVICES, given);
        given.withObject("/spec").put("value", "changed");
        created.withObject("/spec").put("value", "changed");
        store.list(SERVICES, null).items().get(0).withObject("/spec").put("value", "changed");
        assertThat(store.get(key("a", "x")).at("/spec/value").asText()).isEqualTo("1");
    }

    @Test
    void aNameCanBeUsedOnce() {
        store.create(SERVICES, resource("a", "x", "1"));
        assertRejected(
                ErrorCode.ALREADY_EXISTS,
                "inferenceservices.serving.kserve.io \"x\" already exists",
                () -> store.create(SERVICES, resource("a", "x", "2")));
        store.create(SERVICES, resource("b", "x", "2"));
        store.create(SECRETS, resource("a", "x", "3"));
    }

    @Test
    void anUpdateWithAnOldVersionIsRejected() {
        ObjectNode first = store.create(SERVICES, resource("a", "x", "1"));
        ObjectNode second = store.update(SERVICES, resource("a", "x", "2"), version(first));
        assertThat(Long.parseLong(version(second))).isGreaterThan(Long.parseLong(version(first)));
        assertThat(second.at("/metadata/uid")).isEqualTo(first.at("/metadata/uid"));
        assertThat(second.at("/metadata/creationTimestamp")).isEqualTo(first.at("/metadata/creationTimestamp"));
        assertRejected(
                ErrorCode.ABORTED,
                "the object has been modified",
                () -> store.update(SERVICES, resource("a", "x", "3"), version(first)));
        assertRejected(
                ErrorCode.ABORTED, "the object has been modified", () -> store.delete(key("a", "x"), version(first)));
        assertThat(store.update(SERVICES, resource("a", "x", "3"), null)
                        .at("/spec/value")
                        .asText())
                .isEqualTo("3");
        assertRejected(
                ErrorCode.NOT_FOUND, "\"y\" not found", () -> store.update(SERVICES, resource("a", "y", "3"), null));
        assertRejected(ErrorCode.NOT_FOUND, "\"y\" not found", () -> store.delete(key("a", "y"), null));
    }

    @Test
    void anUpdateThatChangesNothingKeepsTheVersion() {
        ObjectNode first = store.create(SERVICES, resource("a", "x", "1"));
        assertThat(store.update(SERVICES, resource("a", "x", "1"), null)).isEqualTo(first);
        assertThat(store.list(SERVICES, null).version()).isEqualTo(Long.parseLong(version(first)));
    }

    @Test
    void aResourceWithFinalizersIsRemovedWithTheLastOfThem() {
        ObjectNode given = resource("a", "x", "1");
        given.withObject("/metadata").withArray("finalizers").add("f");
        store.create(SERVICES, given);
        ObjectNode marked = store.delete(key("a", "x"), null);
        assertThat(marked.at("/metadata/deletionTimestamp").asText()).isNotEmpty();
        assertThat(store.delete(key("a", "x"), null)).isEqualTo(marked);
        assertThat(store.get(key("a", "x"))).isEqualTo(marked);
        store.update(SERVICES, resource("a", "x", "1"), version(marked));
        assertThat(store.get(key("a", "x"))).isNull();
    }

    @Test
    void aListHasEverythingOfATypeByNamespaceAndName() {
        store.create(SERVICES, resource("b", "x", "1"));
        store.create(SERVICES, resource("a", "z", "1"));
        store.create(SERVICES, resource("a", "y", "1"));
        store.create(SECRETS, resource("a", "s", "1"));
        assertThat(store.list(SERVICES, null).items())
                .extracting(r -> r.at("/metadata/namespace").asText() + "/"
                        + r.at("/metadata/name").asText())
                .containsExactly("a/y", "a/z", "b/x");
        assertThat(store.list(SERVICES, "a").items()).hasSize(2);
        assertThat(store.list(SERVICES, "c").items()).isEmpty();
        store.delete(key("a", "z"), null);
        assertThat(store.list(SERVICES, "a").items()).hasSize(1);
        assertThat(store.list(SERVICES, "a").version())
                .isEqualTo(store.list(SECRETS, null).version());
    }

    @Test
    void aWatchDeliversEveryChangeAfterAVersionInOrder() throws Exception {
        store.create(SERVICES, resource("a", "x", "1"));
        long from = store.list(SERVICES, null).version();
        store.create(SERVICES, resource("a", "y", "1"));
        store.create(SERVICES, resource("b", "y", "1"));
        store.create(SECRETS, resource("a", "y", "1"));
        BlockingQueue<Change> events = new LinkedBlockingQueue<>();
        ResourceStore.Watch watch = store.watch(SERVICES, "a", from, events::add);
        store.update(SERVICES, resource("a", "x", "2"), null);
        store.delete(key("a", "y"), null);
        assertThat(take(events, 3)).containsExactly("ADDED y 1", "MODIFIED x 2", "DELETED y 1");
        watch.close();
        store.create(SERVICES, resource("a", "late", "1"));
        ResourceStore.Watch all = store.watch(SERVICES, null, 0, events::add);
        assertThat(take(events, 3)).containsExactly("ADDED late 1", "ADDED x 2", "ADDED y 1");
        all.close();
    }

    private static List<String> take(BlockingQueue<Change> events, int count) throws InterruptedException {
        List<String> lines = new ArrayList<>();
        long before = 0;
        for (int i = 0; i < count; i++) {
            Change change = events.poll(10, TimeUnit.SECONDS);
            assertThat(change).isNotNull();
            assertThat(change.resource().at("/metadata/resourceVersion").asText())
                    .isEqualTo(Long.toString(change.version()));
            if (change.kind() != Change.Kind.ADDED) {
                assertThat(change.version()).isGreaterThan(before);
            }
            before = change.version();
            lines.add(
                    change.kind() + " " + change.resource().at("/metadata/name").asText() + " "
                            + change.resource().at("/spec/value").asText());
        }
        return lines;
    }

    @Test
    void aWatchFromAFutureVersionIsRejected() {
        assertRejected(
                ErrorCode.OUT_OF_RANGE,
                "too large resource version",
                () -> store.watch(SERVICES, null, 1000, change -> {}).close());
    }

    @Test
    void concurrentWritersLoseNothing() throws Exception {
        store.create(SERVICES, resource("a", "counter", "0"));
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 8; t++) {
            Thread thread = io.nereid.base.Threads.named("writer").newThread(() -> {
                for (int i = 0; i < 25; i++) {
                    increment();
                }
            });
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join(60_000);
        }
        assertThat(store.get(key("a", "counter")).at("/spec/value").asText()).isEqualTo("200");
    }

    private void increment() {
        while (true) {
            ObjectNode counter = store.get(key("a", "counter"));
            ObjectNode spec = counter.withObject("/spec");
            spec.put("value", Integer.toString(spec.path("value").asInt() + 1));
            try {
                store.update(SERVICES, counter, version(counter));
                return;
            } catch (ServingException e) {
                assertThat(e.code()).isEqualTo(ErrorCode.ABORTED);
            }
        }
    }
}
