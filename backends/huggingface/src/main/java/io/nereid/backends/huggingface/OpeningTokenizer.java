// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.function.Supplier;

/** A tokenizer that is opened on a thread of its own while the session of the model is. Used by one thread. */
final class OpeningTokenizer {
    private final FutureTask<TextTokenizer> task;

    private OpeningTokenizer(FutureTask<TextTokenizer> task) {
        this.task = task;
    }

    static OpeningTokenizer start(Supplier<TextTokenizer> open) {
        FutureTask<TextTokenizer> task = new FutureTask<>(open::get);
        Threads.named("load-tokenizer").newThread(task).start();
        return new OpeningTokenizer(task);
    }

    /**
     * Waits for the tokenizer, which is then the caller's.
     *
     * @throws ServingException the reason why it cannot be opened
     */
    TextTokenizer await() {
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    return task.get();
                } catch (InterruptedException e) {
                    // It takes a part of a second, and has to be closed in any case.
                    interrupted = true;
                } catch (ExecutionException e) {
                    throw ServingException.from(e.getCause() == null ? e : e.getCause());
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Closes the tokenizer, if it can be opened, after the load failed for another reason or for its own. */
    void discard() {
        TextTokenizer tokenizer;
        try {
            tokenizer = await();
        } catch (ServingException e) {
            // The load has failed already, and it is its reason that counts.
            return;
        }
        tokenizer.close();
    }
}
