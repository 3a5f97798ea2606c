// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import io.nereid.access.audit.AuditEntry;
import io.nereid.access.audit.AuditLog;
import io.nereid.app.process.Logging;
import io.nereid.base.Clock;
import io.nereid.base.access.Operation;
import io.nereid.transport.AccessLog;
import io.nereid.transport.api.HttpReply;
import java.util.Locale;
import org.jspecify.annotations.Nullable;
import org.slf4j.LoggerFactory;

/**
 * Writes finished requests to the access log, a line each with the logger {@code access}, and those that change something
 * to the audit log. Thread-safe.
 */
public final class RequestLogs implements AccessLog {
    private final org.slf4j.Logger log = LoggerFactory.getLogger("access");
    private final boolean access;
    private final Logging logging;
    private final @Nullable AuditLog audit;
    private final Clock clock;

    /**
     * Creates the logs.
     *
     * @param access whether there is an access log
     * @param audit the audit log; null for none
     */
    public RequestLogs(boolean access, Logging logging, @Nullable AuditLog audit, Clock clock) {
        this.access = access;
        this.logging = logging;
        this.audit = audit;
        this.clock = clock;
    }

    @Override
    public void finished(Entry e) {
        if (access) {
            log.info("{}", logging.isJson() ? json(e) : text(e));
        }
        Operation operation = e.operation();
        // a refusal before the body was read is recorded by the access policy, which knows whose it was
        boolean recorded = e.denied() && e.caller().equals("anonymous");
        if (audit != null && operation != null && operation.permission().guarded() && !recorded) {
            audit.record(new AuditEntry(
                    clock.millis(),
                    e.caller(),
                    operation,
                    e.model(),
                    e.method(),
                    e.path(),
                    address(e),
                    e.requestId(),
                    e.denied()
                            ? AuditEntry.Outcome.DENIED
                            : e.succeeded() ? AuditEntry.Outcome.OK : AuditEntry.Outcome.FAILED,
                    e.status()));
        }
    }

    private static String address(Entry e) {
        return String.valueOf(e.remote()).replaceFirst("^/", "");
    }

    private static String text(Entry e) {
        return e.remote() + " " + e.protocol() + " " + e.method() + " " + e.path() + " " + e.status() + " in="
                + e.bytesIn() + " out=" + e.bytesOut() + " us=" + e.nanos() / 1_000 + " id="
                + (e.requestId() == null ? "-" : e.requestId()) + " caller=" + e.caller();
    }

    /** The entry as fields of the log's JSON line, in which they stand beside time and level. */
    static String json(Entry e) {
        StringBuilder b = new StringBuilder(256);
        b.append("{\"remote\":").append(HttpReply.quote(address(e)));
        b.append(",\"protocol\":").append(HttpReply.quote(e.protocol()));
        b.append(",\"method\":").append(HttpReply.quote(e.method()));
        b.append(",\"path\":").append(HttpReply.quote(e.path()));
        b.append(",\"status\":").append(e.status());
        b.append(",\"bytesIn\":").append(e.bytesIn());
        b.append(",\"bytesOut\":").append(e.bytesOut());
        b.append(",\"microseconds\":").append(e.nanos() / 1_000);
        b.append(",\"caller\":").append(HttpReply.quote(e.caller()));
        Operation operation = e.operation();
        if (operation != null) {
            b.append(",\"operation\":\"")
                    .append(operation.name().toLowerCase(Locale.ROOT).replace('_', '-'))
                    .append('"');
        }
        if (e.model() != null) {
            b.append(",\"model\":").append(HttpReply.quote(e.model()));
        }
        if (e.requestId() != null) {
            b.append(",\"requestId\":").append(HttpReply.quote(e.requestId()));
        }
        if (e.peer() != null) {
            b.append(",\"certificate\":").append(HttpReply.quote(e.peer()));
        }
        return b.append('}').toString();
    }
}
