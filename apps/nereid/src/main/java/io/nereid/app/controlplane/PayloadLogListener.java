// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.controlplane;

import io.nereid.control.core.Workload;
import io.nereid.control.local.spi.InProcessComponents.PayloadLogger;
import io.nereid.payload.PayloadLog;
import io.nereid.payload.PayloadLogs;
import io.nereid.payload.PayloadOrigin;
import io.nereid.payload.PayloadSettings;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.UpstreamClient;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Connects a revision's payload log to the gateway, as a payload listener. Immutable and thread-safe. */
public final class PayloadLogListener implements PayloadLogger {
    private final PayloadLog log;
    private final List<String> warnings;

    /**
     * Opens the payload log.
     *
     * @param over sends the events to their receivers
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for an invalid setting or destination
     */
    public PayloadLogListener(PayloadLogs logs, Workload workload, PayloadSettings settings, UpstreamClient over) {
        this.warnings = settings.warnings();
        this.log = logs.open(
                settings,
                new PayloadOrigin(
                        workload.namespace(),
                        workload.service(),
                        workload.component().text(),
                        workload.revision(),
                        "",
                        workload.revision(),
                        workload.annotations()),
                over);
    }

    @Override
    public List<String> warnings() {
        return warnings;
    }

    @Override
    public @Nullable Recorder begin(Head head) {
        PayloadLog.Recorder entry = log.begin(head.transport(), head.method(), head::header, head::headers);
        return entry == null ? null : new LoggedRequest(entry);
    }

    @Override
    public void close() {
        log.close();
    }

    /** One request. As thread-safe as the log entry behind it. */
    private record LoggedRequest(PayloadLog.Recorder entry) implements Recorder {
        @Override
        public void request(String contentType, MemoryRegion body) {
            entry.request(contentType, body);
        }

        @Override
        public void response(String contentType, MemoryRegion body) {
            entry.response(contentType, body);
        }

        @Override
        public void end(int status, int code) {
            entry.end(status, code);
        }
    }
}
