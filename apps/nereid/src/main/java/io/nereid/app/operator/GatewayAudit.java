// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import io.nereid.access.audit.AuditEntry;
import io.nereid.access.audit.AuditLog;
import io.nereid.base.Clock;
import io.nereid.base.access.Caller;
import io.nereid.control.operator.access.ServiceAccess.RefusalListener;
import io.nereid.transport.api.HttpStatusCodes;
import org.jspecify.annotations.Nullable;

/** Writes the refusals of a gateway into the audit log. Stateless. */
final class GatewayAudit {
    private GatewayAudit() {}

    /** @param audit null for none */
    static RefusalListener of(@Nullable AuditLog audit, Clock clock) {
        if (audit == null) {
            return refusal -> {};
        }
        return refusal -> {
            boolean anonymous = refusal.caller().equals(Caller.ANONYMOUS.name());
            if (!refusal.early() && refusal.operation().permission().guarded() && !anonymous) {
                // The end of the request is recorded, with the same name.
                return;
            }
            audit.record(new AuditEntry(
                    clock.millis(),
                    refusal.caller(),
                    refusal.operation(),
                    refusal.target(),
                    refusal.method(),
                    refusal.path(),
                    refusal.remote(),
                    refusal.requestId(),
                    AuditEntry.Outcome.DENIED,
                    refusal.grpc() ? refusal.status().number() : HttpStatusCodes.http(refusal.status())));
        };
    }
}
