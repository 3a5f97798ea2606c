// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.console;

import io.nereid.access.credential.BrowserSessions;
import io.nereid.app.process.ProgramVersion;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.base.access.Operation;
import io.nereid.base.access.Permission;
import io.nereid.engine.Engine;
import io.nereid.json.JsonWriter;
import io.nereid.transport.TransportStats;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.ResponseBody;
import java.net.URL;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The routes of the web console: the page's files, which everyone may read and which hold nothing of this server; the
 * sign-in; and data that need the permission {@code console}. The log, the settings and recorded requests need {@code configure-observe}
 * for all models besides.
 *
 * <p>Thread-safe.
 */
public final class ConsoleCodec implements ProtocolCodec, AutoCloseable {
    /** The path of the page. */
    public static final String PATH = "/console";

    private static final String API = PATH + "/api";
    private static final Pattern COOKIE_PATH = Pattern.compile("/(?:[A-Za-z0-9._~-]+/)*");
    private static final int MOST_PATH = 200;

    private final ConsoleAssets assets = new ConsoleAssets();
    private final LogBuffer log = new LogBuffer();
    private final LiveStreams streams;
    private final LiveFeed feed;
    private final Engine engine;
    private final @Nullable BrowserSessions sessions;
    private final Function<String, List<Path>> recordings;
    private final Executor executor;
    private final boolean modelControl;
    private final Supplier<String> settings;
    private final @Nullable HttpRoute control;

    /**
     * Creates the routes, and begins to keep the last records of the log.
     *
     * @param sessions null where callers are not known by credentials
     * @param recordings the files with the recorded requests of a model, the newest first; blocks
     * @param executor reads files
     * @param modelControl whether clients may load and unload models, by the model control mode
     * @param settings writes the settings in force as a JSON array
     * @param control the route of the control API; null for a server without control plane
     */
    public ConsoleCodec(
            Engine engine,
            Supplier<TransportStats> transport,
            LongSupplier residentBytes,
            @Nullable BrowserSessions sessions,
            Function<String, List<Path>> recordings,
            Executor executor,
            Clock clock,
            boolean modelControl,
            Supplier<String> settings,
            @Nullable HttpRoute control) {
        this.engine = engine;
        this.feed = new LiveFeed(engine, transport, residentBytes, clock, ProgramVersion.number());
        this.streams = new LiveStreams(feed::read, LiveFeed.HISTORY);
        this.sessions = sessions;
        this.recordings = recordings;
        this.executor = executor;
        this.modelControl = modelControl;
        this.settings = settings;
        this.control = control;
        log.install();
    }

    @Override
    public String name() {
        return "console";
    }

    @Override
    public @Nullable URL openApi() {
        return ConsoleCodec.class.getResource("openapi.json");
    }

    @Override
    public List<HttpRoute> httpRoutes() {
        List<HttpRoute> routes = new ArrayList<>(List.of(
                HttpRoute.get(PATH + "/{rest...}", Operation.HEALTH, this::file),
                HttpRoute.get(API + "/session", Operation.CONSOLE, x -> x.reply(session(x, null))),
                HttpRoute.post(API + "/session", Operation.CONSOLE, this::signIn),
                new HttpRoute("DELETE", API + "/session", Operation.HEALTH, this::signOut),
                HttpRoute.get(API + "/live", Operation.CONSOLE, x -> streams.open(x, feed.lines(x.caller()))),
                HttpRoute.get(API + "/models/{model}", Operation.CONSOLE, this::model),
                HttpRoute.get(API + "/models/{model}/recorded", Operation.CONSOLE, this::recorded),
                HttpRoute.get(API + "/log", Operation.CONSOLE, x -> {
                    x.require(Permission.CONFIGURE_OBSERVE, Caller.ALL);
                    streams.open(x, log.reader());
                }),
                HttpRoute.get(API + "/settings", Operation.CONSOLE, x -> {
                    x.require(Permission.CONFIGURE_OBSERVE, Caller.ALL);
                    x.reply(HttpReply.json(200, settings.get()));
                })));
        if (control != null) {
            routes.add(ControlRoute.below(API + "/control", control));
        }
        return routes;
    }

    private void file(HttpExchange x) {
        String path = x.path();
        if (!path.startsWith(PATH + "/")) {
            // Relative, so that it stays right behind a proxy with a path prefix.
            x.reply(new HttpReply(308, "", new String[] {"location", "console/"}, new ResponseBody(new byte[0], 0)));
            return;
        }
        assets.reply(x, path.substring(PATH.length() + 1));
    }

    private void model(HttpExchange x) {
        String name = x.pathParameter(0);
        x.require(Permission.CONSOLE, name);
        x.require(Permission.METADATA, name);
        executor.execute(() -> {
            try {
                x.reply(HttpReply.json(200, StoredModelReport.of(engine, name)));
            } catch (RuntimeException e) {
                x.fail(ServingException.from(e));
            }
        });
    }

    /** Recorded requests are what clients have sent: they need the permission of the log besides. */
    private void recorded(HttpExchange x) {
        String name = x.pathParameter(0);
        x.require(Permission.CONFIGURE_OBSERVE, Caller.ALL);
        x.require(Permission.INFER, name);
        executor.execute(() -> {
            try {
                x.reply(HttpReply.json(200, RecordedExamples.of(recordings.apply(name))));
            } catch (RuntimeException e) {
                x.fail(ServingException.from(e));
            }
        });
    }

    /** Opens a session for the credentials that the request itself carries, which the access policy has verified. */
    private void signIn(HttpExchange x) {
        BrowserSessions open = sessions;
        if (open == null) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "this server has no keys to sign in with",
                    "start it with --api-keys or --access-config");
        }
        String header = x.header("authorization");
        if (header == null || !header.regionMatches(true, 0, "Bearer ", 0, 7)) {
            throw ServingException.invalidArgument(
                    "signing in needs an API key or a token", "send it in the header 'authorization: Bearer …'");
        }
        String path = x.queryParameter("path");
        if (path == null
                || path.length() > MOST_PATH
                || !COOKIE_PATH.matcher(path).matches()) {
            throw ServingException.invalidArgument("the query parameter 'path' is '" + path
                    + "' (expected: the path below which this server's routes" + " are for the browser, such as '/')");
        }
        BrowserSessions.Session session =
                open.open(header.substring(7).strip(), x.caller().name());
        boolean secure = Boolean.parseBoolean(x.queryParameter("secure"));
        HttpReply reply = session(x, session);
        x.reply(new HttpReply(
                reply.status(),
                reply.contentType(),
                new String[] {
                    "set-cookie",
                    cookie(session.id(), path, secure) + "; Max-Age=" + BrowserSessions.LIFETIME.toSeconds(),
                    "cache-control",
                    "no-store"
                },
                reply.content()));
    }

    private static String cookie(String value, String path, boolean secure) {
        return BrowserSessions.COOKIE + "=" + value + "; Path=" + path + "; HttpOnly; SameSite=Strict"
                + (secure ? "; Secure" : "");
    }

    private void signOut(HttpExchange x) {
        BrowserSessions open = sessions;
        BrowserSessions.Session session = open == null ? null : open.find(x.header("cookie"));
        if (open != null && session != null) {
            open.close(session);
        }
        x.reply(HttpReply.json(200, "{}"));
    }

    /** Who the caller is, and what the page may offer. */
    private HttpReply session(HttpExchange x, BrowserSessions.@Nullable Session opened) {
        BrowserSessions.Session session =
                opened != null ? opened : sessions == null ? null : sessions.find(x.header("cookie"));
        Caller caller = x.caller();
        JsonWriter json = new JsonWriter(256);
        json.beginObject().name("name").value(caller.name()).name("permissions").beginArray();
        for (Permission permission : Permission.values()) {
            if (caller.may(permission, null)) {
                json.value(permission.configName());
            }
        }
        json.endArray().name("modelControl").value(modelControl).name("control").value(control != null);
        if (session != null) {
            json.name("csrfToken").value(session.csrfToken());
        }
        json.endObject();
        byte[] text = Arrays.copyOf(json.array(), json.length());
        HttpReply reply = HttpReply.json(200, text, text.length);
        return new HttpReply(
                reply.status(), reply.contentType(), new String[] {"cache-control", "no-store"}, reply.content());
    }

    /** Ends the streams, so that the server can drain. */
    @Override
    public void close() {
        streams.close();
        log.close();
    }
}
