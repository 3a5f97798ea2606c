// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.control.api.Kind;
import io.nereid.control.apiserver.Resources.Refused;
import io.nereid.control.apiserver.Resources.Target;
import io.nereid.control.core.ResourceStore;
import io.nereid.control.core.ResourceStore.Listing;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.ResponseStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Reads resources in the forms that clients ask for: one, a list, a watch. Thread-safe. */
final class Reads implements AutoCloseable {
    private static final int BOOKMARK_SECONDS = 60;

    private final ResourceStore store;
    private final Pods pods;
    private final Resources resources;
    private final Tables tables;
    private final ScheduledThreadPoolExecutor timer;
    private final Set<WatchStream> watches = ConcurrentHashMap.newKeySet();

    Reads(ResourceStore store, Pods pods, Resources resources, Clock clock, ScheduledThreadPoolExecutor timer) {
        this.store = store;
        this.pods = pods;
        this.resources = resources;
        this.tables = new Tables(clock);
        this.timer = timer;
    }

    /** Ends every watch. */
    @Override
    public void close() {
        watches.forEach(WatchStream::end);
        watches.clear();
    }

    /** The first form among those accepted that there is. */
    private static String form(ApiRequest request) {
        for (String accepted : request.accepted()) {
            if (accepted.startsWith("application/json")
                    || accepted.startsWith("*/*")
                    || accepted.startsWith("application/*")) {
                if (accepted.contains("as=Table")) {
                    return "Table";
                }
                if (accepted.contains("as=PartialObjectMetadata")) {
                    return "Metadata";
                }
                return "";
            }
        }
        throw new Refused(
                Answer.failure(406, "NotAcceptable", "only the following media types are accepted: application/json"));
    }

    /** One resource, or one pod. */
    Answer one(Target target, ApiRequest request) {
        Kind kind = target.kind();
        ObjectNode found = kind == Pods.KIND ? pods.get(target) : resources.get(target);
        String include = request.query("includeObject");
        return Answer.ok(
                switch (form(request)) {
                    case "Table" -> {
                        ObjectNode metadata = Answer.JSON.createObjectNode();
                        metadata.set("resourceVersion", found.path("metadata").get("resourceVersion"));
                        yield tables.table(kind, List.of(found), metadata, include == null ? "" : include);
                    }
                    case "Metadata" -> Tables.metadataOnly(found);
                    default -> found;
                });
    }

    /** Those that match, from the place on where the last answer ended. */
    Answer list(Target target, ApiRequest request) {
        Kind kind = target.kind();
        Selectors selectors = new Selectors(kind, request.query("labelSelector"), request.query("fieldSelector"));
        Listing listing = listing(target);
        List<ObjectNode> items = new ArrayList<>();
        long limit = request.number("limit", 0);
        String after = after(request.query("continue"));
        String next = "";
        long remaining = 0;
        String last = "";
        for (ObjectNode item : listing.items()) {
            String place = place(item);
            if (!after.isEmpty() && place.compareTo(after) <= 0 || !selectors.matches(item)) {
                continue;
            }
            if (limit > 0 && items.size() == limit) {
                next = last;
                remaining++;
                continue;
            }
            items.add(Resources.complete(kind, item));
            last = place;
        }
        ObjectNode metadata = Answer.JSON.createObjectNode();
        metadata.put("resourceVersion", Long.toString(listing.version()));
        if (!next.isEmpty()) {
            metadata.put(
                    "continue",
                    Base64.getUrlEncoder().withoutPadding().encodeToString(next.getBytes(StandardCharsets.UTF_8)));
            metadata.put("remainingItemCount", remaining);
        }
        String form = form(request);
        if (form.equals("Table")) {
            String include = request.query("includeObject");
            return Answer.ok(tables.table(kind, items, metadata, include == null ? "" : include));
        }
        boolean partial = form.equals("Metadata");
        ObjectNode list = Answer.JSON.createObjectNode();
        list.put("kind", partial ? "PartialObjectMetadataList" : kind.listKind())
                .put("apiVersion", partial ? "meta.k8s.io/v1" : kind.apiVersion());
        list.set("metadata", metadata);
        ArrayNode array = list.putArray("items");
        items.forEach(item -> array.add(partial ? Tables.metadataOnly(item) : item));
        return Answer.ok(list);
    }

    private static @Nullable String namespace(Target target) {
        return target.kind().namespaced() && !target.namespace().isEmpty() ? target.namespace() : null;
    }

    /** Where a resource stands in its list: by namespace, then by name. */
    private static String place(JsonNode item) {
        JsonNode metadata = item.path("metadata");
        return metadata.path("namespace").asText("") + "\u0000"
                + metadata.path("name").asText("");
    }

    private static String after(@Nullable String token) {
        if (token == null || token.isEmpty()) {
            return "";
        }
        try {
            return new String(Base64.getUrlDecoder().decode(token), StandardCharsets.UTF_8);
        } catch (IllegalArgumentException e) {
            throw ServingException.invalidArgument("continue key is not valid: " + token);
        }
    }

    /** Answers with changes until the client goes, the time is over or the server ends: null. */
    @Nullable
    Answer watch(Target target, ApiRequest request) {
        Kind kind = target.kind();
        Selectors selectors = new Selectors(kind, request.query("labelSelector"), request.query("fieldSelector"));
        String form = form(request);
        String include = request.query("includeObject");
        Function<JsonNode, JsonNode> shape = switch (form) {
            case "Table" ->
                resource -> {
                    ObjectNode metadata = Answer.JSON.createObjectNode();
                    metadata.set("resourceVersion", resource.path("metadata").get("resourceVersion"));
                    return tables.table(kind, List.of(resource), metadata, include == null ? "" : include);
                };
            case "Metadata" -> Tables::metadataOnly;
            default -> resource -> Resources.complete(kind, (ObjectNode) resource);
        };
        long from = request.number("resourceVersion", 0);
        boolean initial = request.flag("sendInitialEvents");
        boolean bookmarks = request.flag("allowWatchBookmarks");
        Listing listing = listing(target);
        Set<String> known = new HashSet<>();
        boolean tellAll = from == 0 || initial;
        for (ObjectNode item : listing.items()) {
            if (!tellAll && selectors.matches(item)) {
                known.add(item.path("metadata").path("uid").asText());
            }
        }
        if (!tellAll) {
            // before the head has gone: a version that is too old is an answer of its own
            changes(target, null, from, change -> {}).close();
        }
        ResponseStream stream = request.exchange().stream(
                new HttpReply(200, HttpReply.JSON, new String[0], new ResponseBody(new byte[0], 0)));
        WatchStream told = new WatchStream(
                stream,
                selectors,
                shape,
                known,
                tellAll ? 0 : listing.version(),
                initial,
                tellAll ? listing.version() : from);
        watches.add(told);
        request.exchange().onCancel(() -> {
            watches.remove(told);
            told.gone();
        });
        if (tellAll) {
            for (ObjectNode item : listing.items()) {
                if (selectors.matches(item)) {
                    told.change(new ResourceStore.Change(
                            ResourceStore.Change.Kind.ADDED,
                            item.path("metadata").path("resourceVersion").asLong(),
                            item));
                }
            }
            if (bookmarks && initial) {
                told.bookmark(bookmark(kind, form), true);
            }
        }
        ResourceStore.Watch watch =
                changes(target, namespace(target), tellAll ? listing.version() : from, told::change);
        long seconds = request.number("timeoutSeconds", 0);
        try {
            Future<?> timeout = seconds <= 0
                    ? null
                    : timer.schedule(
                            () -> {
                                watches.remove(told);
                                told.end();
                            },
                            seconds,
                            TimeUnit.SECONDS);
            Future<?> ticks = !bookmarks
                    ? null
                    : timer.scheduleAtFixedRate(
                            () -> told.bookmark(bookmark(kind, form), false),
                            BOOKMARK_SECONDS,
                            BOOKMARK_SECONDS,
                            TimeUnit.SECONDS);
            told.with(watch, timeout, ticks);
        } catch (RejectedExecutionException e) {
            watch.close();
            told.end();
        }
        return null;
    }

    private static ObjectNode bookmark(Kind kind, String form) {
        ObjectNode resource = Answer.JSON.createObjectNode();
        if (form.equals("Table")) {
            resource.put("kind", "Table").put("apiVersion", "meta.k8s.io/v1");
            resource.putArray("columnDefinitions");
            resource.putArray("rows");
        } else if (form.equals("Metadata")) {
            resource.put("kind", "PartialObjectMetadata").put("apiVersion", "meta.k8s.io/v1");
        } else {
            resource.put("kind", kind.kind()).put("apiVersion", kind.apiVersion());
        }
        resource.putObject("metadata");
        return resource;
    }

    private Listing listing(Target target) {
        return target.kind() == Pods.KIND ? pods.list(namespace(target)) : store.list(target.type(), namespace(target));
    }

    private ResourceStore.Watch changes(
            Target target, @Nullable String namespace, long from, Consumer<ResourceStore.Change> listener) {
        return target.kind() == Pods.KIND
                ? pods.watch(namespace, from, listener)
                : store.watch(target.type(), namespace, from, listener);
    }
}
