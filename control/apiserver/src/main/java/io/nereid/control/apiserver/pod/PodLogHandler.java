// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver.pod;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.control.apiserver.http.ApiRequest;
import io.nereid.control.apiserver.http.ResourceAddress;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.ResponseStream;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** Serves the logs of pods, and streams new lines to clients that follow them. Thread-safe. */
public final class PodLogHandler implements AutoCloseable {
    private static final int FOLLOW_MILLIS = 500;

    private final PodView pods;
    private final Clock clock;
    private final ScheduledThreadPoolExecutor timer;
    private final Set<PodLogStream> followed = ConcurrentHashMap.newKeySet();

    public PodLogHandler(PodView pods, Clock clock, ScheduledThreadPoolExecutor timer) {
        this.pods = pods;
        this.clock = clock;
        this.timer = timer;
    }

    /** Ends all streams. */
    @Override
    public void close() {
        followed.forEach(PodLogStream::end);
        followed.clear();
    }

    /** Replies to a request for a pod's log. */
    public void answer(ResourceAddress target, ApiRequest request) {
        ObjectNode unused = pods.get(target);
        PodLogStream log = new PodLogStream(
                pods, target.namespace(), target.name(), request, Instant.ofEpochMilli(clock.millis()));
        String text = log.text(request.number("tailLines", -1), request.number("limitBytes", -1));
        if (!request.flag("follow")) {
            request.exchange().reply(HttpReply.text(200, "text/plain; charset=utf-8", text));
            return;
        }
        ResponseStream stream = request.exchange().stream(
                new HttpReply(200, "text/plain; charset=utf-8", new String[0], new ResponseBody(new byte[0], 0)));
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        stream.send(new ResponseBody(bytes, bytes.length));
        followed.add(log);
        request.exchange().onCancel(() -> {
            followed.remove(log);
            log.abort();
        });
        try {
            log.follow(
                    stream,
                    timer.scheduleWithFixedDelay(
                            () -> {
                                if (!log.poll(pods.get(target.namespace(), target.name()) != null)) {
                                    followed.remove(log);
                                }
                            },
                            FOLLOW_MILLIS,
                            FOLLOW_MILLIS,
                            TimeUnit.MILLISECONDS));
        } catch (RejectedExecutionException e) {
            followed.remove(log);
            stream.end();
        }
    }
}
