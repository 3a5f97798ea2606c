// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver.read;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.api.store.ResourceStore.Listing;
import io.nereid.control.apiserver.cluster.ClusterKinds;
import io.nereid.control.apiserver.http.ApiRequest;
import io.nereid.control.apiserver.http.ApiResponse;
import io.nereid.control.apiserver.http.ErrorResponseException;
import io.nereid.control.apiserver.http.ResourceAddress;
import io.nereid.control.apiserver.pod.PodView;
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

/**
 * Serves get, list and watch, in the formats that clients ask for: resources, tables, or metadata only. Thread-safe.
 */
public final class ReadHandler implements AutoCloseable {
    private static final int BOOKMARK_SECONDS = 60;

    private final ResourceStore store;
    private final PodView pods;
    private final ClusterKinds views;
    private final TablePrinter tables;
    private final ScheduledThreadPoolExecutor timer;
    private final Set<WatchStream> watches = ConcurrentHashMap.newKeySet();

    /** @param views the kinds that are not in the store */
    public ReadHandler(
            ResourceStore store, PodView pods, ClusterKinds views, Clock clock, ScheduledThreadPoolExecutor timer) {
        this.store = store;
        this.pods = pods;
        this.views = views;
        this.tables = new TablePrinter(clock);
        this.timer = timer;
    }

    /** Ends all watches. */
    @Override
    public void close() {
        watches.forEach(WatchStream::end);
        watches.clear();
    }

    /** The format of the response: the first accepted one that is supported. */
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
        throw new ErrorResponseException(ApiResponse.failure(
                406, "NotAcceptable", "only the following media types are accepted: application/json"));
    }

    /** Gets one resource or one pod. */
    public ApiResponse one(ResourceAddress target, ApiRequest request) {
        ResourceKind kind = target.kind();
        ObjectNode found =
                kind == PodView.KIND ? pods.get(target) : ClusterKinds.has(kind) ? view(target) : target.read(store);
        String include = request.query("includeObject");
        return ApiResponse.ok(
                switch (form(request)) {
                    case "Table" -> {
                        ObjectNode metadata = ApiResponse.JSON.createObjectNode();
                        metadata.set("resourceVersion", found.path("metadata").get("resourceVersion"));
                        yield tables.table(kind, List.of(found), metadata, include == null ? "" : include);
                    }
                    case "Metadata" -> TablePrinter.metadataOnly(found);
                    default -> found;
                });
    }

    /**
     * Lists the matching resources. With {@code limit} a page, which starts after the resource in the {@code continue}
     * token; the token is the position of the last resource of the previous page, so it stays valid when resources
     * change.
     */
    public ApiResponse list(ResourceAddress target, ApiRequest request) {
        ResourceKind kind = target.kind();
        ResourceSelector selectors =
                new ResourceSelector(kind, request.query("labelSelector"), request.query("fieldSelector"));
        Listing listing = listing(target);
        List<ObjectNode> items = new ArrayList<>();
        long limit = request.number("limit", 0);
        String after = after(request.query("continue"));
        String next = "";
        long remaining = 0;
        String last = "";
        for (ObjectNode item : listing.items()) {
            String position = position(item);
            if (!after.isEmpty() && position.compareTo(after) <= 0 || !selectors.matches(item)) {
                continue;
            }
            if (limit > 0 && items.size() == limit) {
                next = last;
                remaining++;
                continue;
            }
            items.add(ResourceAddress.complete(kind, item));
            last = position;
        }
        ObjectNode metadata = ApiResponse.JSON.createObjectNode();
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
            return ApiResponse.ok(tables.table(kind, items, metadata, include == null ? "" : include));
        }
        boolean partial = form.equals("Metadata");
        ObjectNode list = ApiResponse.JSON.createObjectNode();
        list.put("kind", partial ? "PartialObjectMetadataList" : kind.listKind())
                .put("apiVersion", partial ? "meta.k8s.io/v1" : kind.apiVersion());
        list.set("metadata", metadata);
        ArrayNode array = list.putArray("items");
        items.forEach(item -> array.add(partial ? TablePrinter.metadataOnly(item) : item));
        return ApiResponse.ok(list);
    }

    private static @Nullable String namespace(ResourceAddress target) {
        return target.kind().namespaced() && !target.namespace().isEmpty() ? target.namespace() : null;
    }

    /** The position of a resource in a list, which is ordered by namespace and name. */
    private static String position(JsonNode item) {
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

    /**
     * Streams changes until the client disconnects, the timeout expires or the server shuts down. Without a resource
     * version the existing resources are sent first, as ADDED.
     *
     * @return null, because the response is a stream
     */
    public @Nullable ApiResponse watch(ResourceAddress target, ApiRequest request) {
        ResourceKind kind = target.kind();
        ResourceSelector selectors =
                new ResourceSelector(kind, request.query("labelSelector"), request.query("fieldSelector"));
        String form = form(request);
        String include = request.query("includeObject");
        Function<JsonNode, JsonNode> shape = switch (form) {
            case "Table" ->
                resource -> {
                    ObjectNode metadata = ApiResponse.JSON.createObjectNode();
                    metadata.set("resourceVersion", resource.path("metadata").get("resourceVersion"));
                    return tables.table(kind, List.of(resource), metadata, include == null ? "" : include);
                };
            case "Metadata" -> TablePrinter::metadataOnly;
            default -> resource -> ResourceAddress.complete(kind, (ObjectNode) resource);
        };
        long from = request.number("resourceVersion", 0);
        boolean initial = request.flag("sendInitialEvents");
        boolean bookmarks = request.flag("allowWatchBookmarks");
        Listing listing = listing(target);
        Set<String> known = new HashSet<>();
        boolean sendAll = from == 0 || initial;
        for (ObjectNode item : listing.items()) {
            if (!sendAll && selectors.matches(item)) {
                known.add(item.path("metadata").path("uid").asText());
            }
        }
        if (!sendAll) {
            // Before the response begins: a version that is too old must get an error status instead of a stream.
            changes(target, null, from, change -> {}).close();
        }
        ResponseStream stream = request.exchange().stream(
                new HttpReply(200, HttpReply.JSON, new String[0], new ResponseBody(new byte[0], 0)));
        WatchStream events = new WatchStream(
                stream,
                selectors,
                shape,
                known,
                sendAll ? 0 : listing.version(),
                initial,
                sendAll ? listing.version() : from);
        watches.add(events);
        request.exchange().onCancel(() -> {
            watches.remove(events);
            events.abort();
        });
        if (sendAll) {
            for (ObjectNode item : listing.items()) {
                if (selectors.matches(item)) {
                    events.change(new ResourceStore.Change(
                            ResourceStore.Change.Kind.ADDED,
                            item.path("metadata").path("resourceVersion").asLong(),
                            item));
                }
            }
            if (bookmarks && initial) {
                events.bookmark(bookmark(kind, form), true);
            }
        }
        ResourceStore.Watch watch =
                changes(target, namespace(target), sendAll ? listing.version() : from, events::change);
        long seconds = request.number("timeoutSeconds", 0);
        try {
            Future<?> timeout = seconds <= 0
                    ? null
                    : timer.schedule(
                            () -> {
                                watches.remove(events);
                                events.end();
                            },
                            seconds,
                            TimeUnit.SECONDS);
            Future<?> ticks = !bookmarks
                    ? null
                    : timer.scheduleAtFixedRate(
                            () -> events.bookmark(bookmark(kind, form), false),
                            BOOKMARK_SECONDS,
                            BOOKMARK_SECONDS,
                            TimeUnit.SECONDS);
            events.with(watch, timeout, ticks);
        } catch (RejectedExecutionException e) {
            watch.close();
            events.end();
        }
        return null;
    }

    private static ObjectNode bookmark(ResourceKind kind, String form) {
        ObjectNode resource = ApiResponse.JSON.createObjectNode();
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

    private ObjectNode view(ResourceAddress target) {
        for (ObjectNode item : views.items(target.kind())) {
            if (item.path("metadata").path("name").asText().equals(target.name())) {
                return item;
            }
        }
        throw target.notFound();
    }

    private Listing listing(ResourceAddress target) {
        if (ClusterKinds.has(target.kind())) {
            return new Listing(store.list(target.type(), null).version(), views.items(target.kind()));
        }
        return target.kind() == PodView.KIND
                ? pods.list(namespace(target))
                : store.list(target.type(), namespace(target));
    }

    private ResourceStore.Watch changes(
            ResourceAddress target, @Nullable String namespace, long from, Consumer<ResourceStore.Change> listener) {
        return target.kind() == PodView.KIND
                ? pods.watch(namespace, from, listener)
                : store.watch(target.type(), namespace, from, listener);
    }
}
