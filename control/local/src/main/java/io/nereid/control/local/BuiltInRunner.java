// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import io.nereid.control.core.Observed.Failure;
import io.nereid.control.gateway.Destination;
import java.time.Instant;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** What runs in the server's process beside the models; any number of replicas is one. Confined to the deciding thread. */
final class BuiltInRunner implements Runner {
    private final Loop loop;
    private final String what;
    private final Supplier<BuiltIns.Running> maker;
    private final Front.Gate gate;
    private final RevisionLog log;
    private final Runnable changed;
    private BuiltIns.@Nullable Running running;
    private int wanted;
    private boolean making;
    private @Nullable Failure failure;

    /**
     * Runs nothing yet.
     *
     * @param what its word for logs, such as {@code explainer}
     * @param maker makes it, on a thread that may wait
     */
    BuiltInRunner(
            Loop loop,
            String what,
            Supplier<BuiltIns.Running> maker,
            Front.Gate gate,
            RevisionLog log,
            Runnable changed) {
        this.loop = loop;
        this.what = what;
        this.maker = maker;
        this.gate = gate;
        this.log = log;
        this.changed = changed;
    }

    @Override
    public int most() {
        return 1;
    }

    @Override
    public void scale(int replicas) {
        wanted = Math.min(1, replicas);
        if (wanted == 0) {
            close();
        } else if (running == null && !making) {
            making = true;
            loop.io(this::make);
        }
        changed.run();
    }

    private void make() {
        BuiltIns.Running made = null;
        RuntimeException error = null;
        try {
            made = maker.get();
        } catch (RuntimeException e) {
            error = e;
        }
        BuiltIns.Running result = made;
        RuntimeException problem = error;
        loop.execute(() -> {
            making = false;
            if (result != null && wanted == 0) {
                result.close();
            } else if (result != null) {
                running = result;
                failure = null;
                gate.destination(new Destination.Handler(result.codecs()));
                log.add("the " + what + " answers");
            } else {
                String reason = ModelForm.text(problem);
                failure = new Failure(
                        "ModelLoadFailed",
                        reason,
                        Instant.ofEpochMilli(loop.clock().millis()),
                        null);
                log.add("the " + what + " cannot be made: " + reason);
            }
            changed.run();
        });
    }

    private void close() {
        BuiltIns.Running now = running;
        running = null;
        if (now != null) {
            now.close();
        }
    }

    @Override
    public int ready() {
        return running == null ? 0 : 1;
    }

    @Override
    public @Nullable Failure failure() {
        return failure;
    }

    @Override
    public boolean failing() {
        return failure != null;
    }

    @Override
    public void end(Runnable ended) {
        wanted = 0;
        close();
        ended.run();
    }
}
