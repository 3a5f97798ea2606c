// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.control;

import com.fasterxml.jackson.databind.JsonNode;
import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.app.client.ServerClient;
import io.nereid.app.control.ControlOptions.Named;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ThreadFactory;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;

/**
 * The logs of the pods of a service in a cluster. Lines of several containers have the names of pod and container in front.
 * One thread prints or follows; following has one more thread for each container.
 */
final class PodLogs {
    private static final int WATCH_SECONDS = 300;

    private final ControlClient client;
    private final Named service;
    private final Choice choice;
    private final PrintWriter out;
    private final PrintWriter err;
    private final Object printing = new Object();
    /** The containers that are followed: the pod's uid, the container's name and its number of restarts. */
    @GuardedBy("printing") private final Set<String> followed = new HashSet<>();

    /**
     * Which logs.
     *
     * @param component null for all
     * @param container null for all
     * @param previous whether those before the last restart
     * @param tail the number of lines from the end of each
     */
    record Choice(@Nullable String component, @Nullable String container, boolean previous, int tail) {}

    /** A container of a pod; its starts are numbered. */
    private record Source(String pod, String uid, String container, int restarts) {
        String prefix() {
            return "[" + pod + " " + container + "] ";
        }

        String key() {
            return uid + " " + container + " " + restarts;
        }
    }

    PodLogs(ControlClient client, Named service, Choice choice, CommandLine command) {
        this.client = client;
        this.service = service;
        this.choice = choice;
        this.out = command.getOut();
        this.err = command.getErr();
    }

    /**
     * Prints the logs.
     *
     * @param follow whether to go on with new lines and new pods until the service is deleted or the thread is interrupted
     * @throws ServingException NOT_FOUND without the service
     */
    void print(boolean follow) {
        JsonNode unused = client.get(service.path());
        if (follow) {
            follow();
            return;
        }
        JsonNode pods = client.get(pods("")).path("items");
        List<Source> sources = new ArrayList<>();
        for (JsonNode pod : pods) {
            sources.addAll(sources(pod));
        }
        if (sources.isEmpty()) {
            err.println(nothing(pods));
            err.flush();
        }
        for (Source source : sources) {
            String text = client.text(log(source, "&tailLines=" + choice.tail()));
            String prefix = sources.size() > 1 ? source.prefix() : "";
            text.lines().forEach(line -> out.println(prefix + line));
            out.flush();
        }
    }

    private String nothing(JsonNode pods) {
        String what = (choice.component() == null ? "" : "the " + choice.component() + " of ") + service.name();
        if (pods.isEmpty()) {
            return what + " has no pods: nereid describe isvc " + service.name() + " -n " + service.namespace();
        }
        Set<String> names = new java.util.TreeSet<>();
        for (JsonNode pod : pods) {
            for (String list : List.of("initContainers", "containers")) {
                pod.path("spec")
                        .path(list)
                        .forEach(one -> names.add(one.path("name").asText()));
            }
        }
        if (choice.container() != null && !names.contains(choice.container())) {
            return "the pods of " + what + " have no container \"" + choice.container() + "\" (they have: "
                    + String.join(", ", names) + ")";
        }
        return choice.previous()
                ? "no container of " + what + " has been restarted"
                : "no container of " + what + " has started: nereid describe isvc " + service.name() + " -n "
                        + service.namespace();
    }

    private String pods(String more) {
        String labels = "serving.kserve.io/inferenceservice=" + service.name()
                + (choice.component() == null ? "" : ",component=" + choice.component());
        return "/api/v1/namespaces/" + ServerClient.segment(service.namespace()) + "/pods?labelSelector="
                + ServerClient.segment(labels) + more;
    }

    private String log(Source source, String more) {
        return "/api/v1/namespaces/" + ServerClient.segment(service.namespace()) + "/pods/"
                + ServerClient.segment(source.pod()) + "/log?container=" + ServerClient.segment(source.container())
                + more + (choice.previous() ? "&previous=true" : "");
    }

    /** The containers that have a log: those that have started, initialisers first. */
    private List<Source> sources(JsonNode pod) {
        List<Source> all = new ArrayList<>();
        for (String list : List.of("initContainerStatuses", "containerStatuses")) {
            for (JsonNode status : pod.path("status").path(list)) {
                String name = status.path("name").asText();
                int restarts = status.path("restartCount").asInt(0);
                boolean started = choice.previous()
                        ? restarts > 0
                        : status.path("state").has("running")
                                || status.path("state").has("terminated")
                                || status.path("lastState").has("terminated");
                if (started && (choice.container() == null || choice.container().equals(name))) {
                    all.add(new Source(
                            pod.path("metadata").path("name").asText(),
                            pod.path("metadata").path("uid").asText(),
                            name,
                            restarts));
                }
            }
        }
        return all;
    }

    private void follow() {
        ThreadFactory threads = Threads.named("logs");
        while (true) {
            JsonNode list = client.get(pods(""));
            if (list.path("items").isEmpty() && client.find(service.path()) == null) {
                return;
            }
            for (JsonNode pod : list.path("items")) {
                follow(pod, threads);
            }
            try {
                client.watch(
                        pods("&watch=true&timeoutSeconds=" + WATCH_SECONDS + "&resourceVersion="
                                + list.path("metadata").path("resourceVersion").asText("0")),
                        false,
                        event -> {
                            boolean goes = event.path("type").asText().matches("DELETED|ERROR");
                            if (!goes) {
                                follow(event.path("object"), threads);
                            }
                            return !goes;
                        });
            } catch (ServingException e) {
                if (e.code() != ErrorCode.OUT_OF_RANGE) {
                    throw e;
                }
            }
        }
    }

    private void follow(JsonNode pod, ThreadFactory threads) {
        for (Source source : sources(pod)) {
            boolean first;
            synchronized (printing) {
                first = followed.add(source.key());
            }
            if (first) {
                threads.newThread(() -> stream(source)).start();
            }
        }
    }

    private void stream(Source source) {
        // a restart has a log of its own, of which nothing has been shown yet
        String tail = source.restarts() == 0 ? "&tailLines=" + choice.tail() : "";
        try {
            client.lines(log(source, "&follow=true" + tail), line -> {
                synchronized (printing) {
                    out.println(source.prefix() + line);
                    out.flush();
                }
            });
        } catch (ServingException e) {
            synchronized (printing) {
                err.println("nereid: " + source.prefix() + e.describe());
                err.flush();
            }
        }
    }
}
