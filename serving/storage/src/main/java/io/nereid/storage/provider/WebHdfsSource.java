// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.provider;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.http.HttpCall;
import io.nereid.storage.http.HttpObject;
import io.nereid.storage.http.HttpSession;
import io.nereid.storage.object.ObjectPaths;
import io.nereid.storage.request.StorageJson;
import io.nereid.storage.spi.ObjectEntry;
import io.nereid.storage.spi.ObjectSource;
import io.nereid.storage.spi.StorageSettings;
import io.nereid.storage.spi.StorageUri;
import java.net.URI;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** {@code hdfs://path} and {@code webhdfs://path}: HDFS, by WebHDFS. Thread-safe. */
final class WebHdfsSource implements ObjectSource {
    private static final int DEPTH = 64;

    private final String uri;
    private final StorageSettings settings;
    private final HttpSession session;
    private final Map<String, String> headers;
    private final List<String> namenodes;
    private final String path;
    private volatile int active;

    WebHdfsSource(String uri, StorageSettings settings, HttpSession session) {
        this.uri = uri;
        this.settings = settings;
        this.session = session;
        if (settings.get("KERBEROS_PRINCIPAL") != null) {
            throw ServingException.invalidArgument(
                    "storage setting KERBEROS_PRINCIPAL: Kerberos is not supported",
                    "use a gateway (HttpFS, Knox) with another way to log in, and HEADERS or TLS_CERT");
        }
        String json = settings.get("HEADERS");
        this.headers = json == null ? Map.of() : StorageJson.fields(json, "storage setting HEADERS");
        String rest = uri.substring(uri.indexOf("://") + 3);
        String configured = settings.get("HDFS_NAMENODE");
        if (configured == null) {
            int slash = rest.indexOf('/');
            String host = slash < 0 ? rest : rest.substring(0, slash);
            if (!uri.startsWith("webhdfs://") || !host.contains(":")) {
                throw ServingException.invalidArgument(
                        StorageUri.shown(uri) + " needs the storage setting HDFS_NAMENODE",
                        "give a secret with HDFS_NAMENODE, as in http://namenode:9870");
            }
            configured = "http://" + host;
            rest = slash < 0 ? "" : rest.substring(slash);
        }
        List<String> nodes = new ArrayList<>();
        for (String node : configured.split(";")) {
            String url = node.trim();
            if (!url.startsWith("http://") && !url.startsWith("https://")) {
                throw ServingException.invalidArgument(
                        "storage setting HDFS_NAMENODE is not an http or https URL",
                        "give the address of WebHDFS, as in http://namenode:9870");
            }
            nodes.add(url.endsWith("/") ? url.substring(0, url.length() - 1) : url);
        }
        this.namenodes = List.copyOf(nodes);
        String base = settings.get("HDFS_ROOTPATH", "");
        String joined = "/" + ObjectPaths.safe(strip(base), "HDFS_ROOTPATH") + "/"
                + ObjectPaths.safe(strip(rest), StorageUri.shown(uri));
        this.path = joined.replaceAll("/+", "/").replaceAll("(?<=.)/$", "");
    }

    private static String strip(String text) {
        return text.replaceAll("^/+", "");
    }

    private URI target(int node, String file, String operation, Map<String, String> query) {
        StringBuilder url = new StringBuilder(namenodes.get(node))
                .append("/webhdfs/v1")
                .append(HttpCall.encode(file, true))
                .append("?op=")
                .append(operation);
        Map<String, String> all = new LinkedHashMap<>(query);
        String user = settings.get("HADOOP_USER_NAME");
        String proxy = settings.get("USER_PROXY");
        if (user != null) {
            all.put("user.name", user);
        }
        if (proxy != null) {
            all.put("doas", proxy);
        }
        all.forEach((name, value) -> url.append('&').append(name).append('=').append(HttpCall.encode(value, false)));
        return URI.create(url.toString());
    }

    private JsonNode ask(String file, String operation) {
        String what = StorageUri.shown(uri);
        ServingException failed = null;
        for (int i = 0; i < namenodes.size(); i++) {
            int node = (active + i) % namenodes.size();
            try {
                HttpSession.Answer answer =
                        session.send(what, () -> HttpCall.get(target(node, file, operation, Map.of()), headers));
                if (answer.ok()) {
                    active = node;
                    return StorageJson.read(answer.text(), "the answer of WebHDFS");
                }
                failed = session.failed(what, answer);
                if (!answer.text().contains("StandbyException")) {
                    throw failed;
                }
            } catch (ServingException e) {
                if (e.code() != ErrorCode.UNAVAILABLE && e != failed
                        || i == namenodes.size() - 1
                        || e == failed && e.code() != ErrorCode.PERMISSION_DENIED) {
                    throw e;
                }
                failed = e;
            }
        }
        throw failed == null ? ServingException.of(ErrorCode.UNAVAILABLE, what + ": there is no namenode") : failed;
    }

    @Override
    public int maxReads() {
        return settings.count("N_THREADS", Integer.MAX_VALUE);
    }

    @Override
    public Listing list() {
        List<ObjectEntry> items = new ArrayList<>();
        JsonNode status = ask(path, "GETFILESTATUS").path("FileStatus");
        if (status.path("type").asText().equals("FILE")) {
            items.add(item(path, ObjectPaths.last(path), status));
        } else {
            Deque<String> directories = new ArrayDeque<>(List.of(""));
            while (!directories.isEmpty()) {
                String directory = directories.remove();
                if (directory.chars().filter(c -> c == '/').count() > DEPTH) {
                    throw ServingException.invalidArgument(
                            StorageUri.shown(uri) + " is deeper than " + DEPTH + " directories");
                }
                String full = directory.isEmpty() ? path : join(path, directory);
                for (JsonNode child :
                        ask(full, "LISTSTATUS").path("FileStatuses").path("FileStatus")) {
                    String name = child.path("pathSuffix").asText();
                    String below = directory.isEmpty() ? name : directory + "/" + name;
                    if (child.path("type").asText().equals("DIRECTORY")) {
                        directories.add(below);
                    } else {
                        items.add(item(join(path, below), below, child));
                    }
                }
            }
        }
        return new Listing("hdfs " + String.join(";", namenodes) + path, items, Shape.FILES);
    }

    private static String join(String directory, String name) {
        return directory.endsWith("/") ? directory + name : directory + "/" + name;
    }

    private ObjectEntry item(String file, String below, JsonNode status) {
        return new HttpObject(
                        below,
                        status.path("length").asLong(),
                        status.path("modificationTime").asText() + "-"
                                + status.path("fileId").asText(),
                        null,
                        null,
                        HttpObject.Ranges.QUERY,
                        (from, to) -> {
                            Map<String, String> query = new LinkedHashMap<>();
                            query.put("offset", String.valueOf(from));
                            if (to >= 0) {
                                query.put("length", String.valueOf(to - from));
                            }
                            return HttpCall.get(target(active, file, "OPEN", query), headers);
                        })
                .entry(session, StorageUri.shown(uri));
    }
}
