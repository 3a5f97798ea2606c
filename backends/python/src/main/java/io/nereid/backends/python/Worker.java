// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import io.nereid.backend.ModelRequest;
import io.nereid.backends.python.Arena.Chunk;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonWriter;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.Sequence;
import io.nereid.tensor.Tensor;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * A process that runs one instance of a model. Frames of JSON, each behind 4 bytes of length, go over its socket; tensors
 * lie in shared memory: an input is copied there once, an output is answered from where the model has put it.
 *
 * <p>One thread reads; runs write by themselves, everybody else through a thread that may block. Thread-safe, but for
 * {@link #execute}, of which there is one at a time.
 */
final class Worker {
    private static final System.Logger LOG = System.getLogger("io.nereid.backends.python");
    private static final int MAX_FRAME = 256 << 20;
    private static final Map<Integer, System.Logger.Level> LEVELS = Map.of(
            0, System.Logger.Level.DEBUG,
            1, System.Logger.Level.INFO,
            2, System.Logger.Level.WARNING,
            3, System.Logger.Level.ERROR);

    private final String model;
    private final String label;
    private final boolean decoupled;
    private final PythonSettings settings;
    private final WorkerProcess process;
    private final SocketChannel channel;
    private final Arena arena;
    private final PeerSlabs peers;
    private final Questions questions;
    private final CustomMetrics metrics;
    private final ExecutorService reader = Threads.single("python-reader");
    private final ThreadPoolExecutor writer = Threads.pool("python-writer", 1);
    private final ConcurrentLinkedQueue<ByteBuffer> outgoing = new ConcurrentLinkedQueue<>();
    private final ReentrantLock writing = new ReentrantLock();
    private final AtomicLong keys = new AtomicLong();
    private final Map<Long, OpenRequest> open = new ConcurrentHashMap<>();
    private final AtomicBoolean dead = new AtomicBoolean();
    private final CompletableFuture<ServingException> death = new CompletableFuture<>();
    private volatile @Nullable CompletableFuture<Map<String, Object>> reply;
    private volatile @Nullable Run running;
    private volatile boolean finishing;
    /** Whether the model has a say in whether it is ready, what it said last, and whether it has been asked again. */
    private volatile boolean moody;

    private volatile boolean ready = true;
    private final AtomicBoolean asked = new AtomicBoolean();

    /** The execute under way: what it returned, and the ends that it must wait for. */
    private static final class Run {
        final CountDownLatch ends;
        volatile @Nullable Map<String, Object> result;

        Run(int ends) {
            this.ends = new CountDownLatch(ends);
        }
    }

    /**
     * Takes over a process that has just connected.
     *
     * @param label the instance's name, for the log
     */
    Worker(PythonModel.Plan plan, String label, WorkerProcess process) {
        this.model = plan.id().model();
        this.label = label;
        this.decoupled = plan.decoupled();
        this.settings = plan.settings();
        this.process = process;
        this.channel = process.channel();
        this.arena = new Arena(settings, this::announce);
        this.peers = new PeerSlabs(arena, this::flushFreed);
        this.metrics = plan.metrics();
        this.questions = new Questions(this, plan.engine(), plan.control(), metrics, peers);
        process.onExit(() -> die(null));
        reader.execute(this::read);
    }

    // ------------------------------------------------------------------ the model's life

    /**
     * Asks for something that takes long: to import, to initialise.
     *
     * @return what the worker replied
     * @throws ServingException INVALID_ARGUMENT with the end of the model's stack trace when it failed
     */
    Map<String, Object> order(Map<String, Object> frame, Duration timeout, String what) {
        CompletableFuture<Map<String, Object>> answer = new CompletableFuture<>();
        reply = answer;
        if (dead.get()) {
            throw death.join();
        }
        JsonWriter json = new JsonWriter(1024);
        Frames.write(json, frame);
        send(Frames.framed(json), true);
        try {
            Map<String, Object> got = answer.get(timeout.toMillis(), TimeUnit.MILLISECONDS);
            if (Frames.string(got, "t").equals("ok")) {
                return got;
            }
            throw ServingException.invalidArgument(
                    "model '" + model + "' failed to " + what + ": " + Frames.string(got, "m"), remedy(got));
        } catch (TimeoutException e) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "model '" + model + "' took longer than " + timeout.toSeconds() + " s to " + what,
                    "give it longer with --backend-config python,initialize-timeout-seconds=N");
        } catch (ExecutionException e) {
            throw ServingException.from(e.getCause() == null ? e : e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw ServingException.of(ErrorCode.UNAVAILABLE, "starting model '" + model + "' was interrupted");
        } finally {
            reply = null;
        }
    }

    private static String remedy(Map<String, Object> reply) {
        return Frames.string(reply, "m").contains("ModuleNotFoundError")
                ? "install the module for the interpreter, or name another environment with EXECUTION_ENV_PATH"
                : "correct the model's file; the log has the whole trace";
    }

    /** Ends the model: lets it finalize for as long as it may take, and then no longer. */
    void finish() {
        if (!dead.get()) {
            finishing = true;
            try {
                order(Map.of("t", "fin"), settings.finalizeTimeout(), "finalize");
                process.awaitExit(Duration.ofSeconds(5));
            } catch (ServingException e) {
                LOG.log(System.Logger.Level.WARNING, label + ": " + e.getMessage());
            }
        }
        abandon();
    }

    /** Ends the process at once. */
    void abandon() {
        die(unloaded());
    }

    private ServingException unloaded() {
        return ServingException.of(ErrorCode.UNAVAILABLE, "model '" + model + "' was unloaded");
    }

    boolean alive() {
        return !dead.get();
    }

    long pid() {
        return process.pid();
    }

    /** Completes with the reason when the process has ended. */
    CompletableFuture<ServingException> death() {
        return death;
    }

    private void die(@Nullable ServingException known) {
        if (!dead.compareAndSet(false, true)) {
            return;
        }
        ServingException reason = known == null && finishing ? unloaded() : known;
        if (reason == null) {
            String how = process.exit();
            LOG.log(System.Logger.Level.ERROR, label + ": its process " + process.pid() + " ended: " + how);
            reason = ServingException.of(
                    ErrorCode.UNAVAILABLE,
                    "the Python process of model '" + model + "' ended (" + how + ") before it had answered",
                    "the server's log has what it printed; a new process is started");
        }
        process.kill();
        writer.shutdown();
        reader.shutdown();
        outgoing.clear();
        ServingException failure = reason;
        questions.close();
        open.values().forEach(o -> o.fail(failure));
        open.clear();
        Run run = running;
        if (run != null) {
            while (run.ends.getCount() > 0) {
                run.ends.countDown();
            }
        }
        CompletableFuture<Map<String, Object>> waiting = reply;
        if (waiting != null) {
            waiting.completeExceptionally(
                    known == null
                            ? ServingException.invalidArgument(
                                    "the Python process of model '" + model + "' ended while it started"
                                            + process.last(),
                                    "see the server's log")
                            : known);
        }
        peers.close();
        arena.close();
        death.complete(failure);
    }

    /** Takes what the worker replied when it had initialised the model. */
    void initialised(Map<String, Object> reply) {
        moody = reply.containsKey("ready");
        ready = !moody || Frames.yes(reply, "ready");
    }

    /** Whether the model has a say in whether it is ready. */
    boolean moody() {
        return moody;
    }

    /** What the model said last of whether it wants requests. */
    boolean ready() {
        return ready;
    }

    /** Asks it, unless it has been asked and has not answered yet. */
    void askReadiness() {
        if (moody && !dead.get() && !finishing && asked.compareAndSet(false, true)) {
            JsonWriter json = new JsonWriter(32);
            send(Frames.framed(json.beginObject().name("t").value("ready").endObject()), false);
        }
    }

    // ------------------------------------------------------------------ requests

    /** Runs the model; every request has ended when this returns, those of a decoupled model end when they like. */
    void execute(List<ModelRequest> requests) {
        Run run = new Run(1 + (decoupled ? 0 : requests.size()));
        List<Long> mine = new ArrayList<>(requests.size());
        JsonWriter json = new JsonWriter(512);
        json.beginObject().name("t").value("exec");
        writeFreed(json);
        json.name("r").beginArray();
        CountDownLatch ends = decoupled ? new CountDownLatch(0) : run.ends;
        for (ModelRequest request : requests) {
            List<Chunk> chunks = new ArrayList<>();
            long key = keys.incrementAndGet();
            try {
                write(json, request, key, chunks);
            } catch (ServingException e) {
                chunks.forEach(Chunk::release);
                mine.forEach(k -> end(k, o -> o.fail(e)));
                throw e;
            }
            open.put(key, new OpenRequest(request, chunks, ends));
            mine.add(key);
        }
        json.endArray().endObject();
        running = run;
        if (dead.get()) {
            mine.forEach(k -> end(k, o -> o.fail(death.join())));
            return;
        }
        send(Frames.framed(json), true);
        await(run, mine);
        running = null;
    }

    /** Answers on this thread what execute returns; the rest ends on the reading one. */
    private void await(Run run, List<Long> mine) {
        boolean interrupted = false;
        while (true) {
            try {
                synchronized (run) {
                    while (run.result == null && !dead.get()) {
                        run.wait(100);
                    }
                }
                Map<String, Object> result = run.result;
                if (result != null) {
                    run.result = null;
                    done(result);
                    run.ends.countDown();
                }
                while (run.ends.getCount() > 0 && !dead.get()) {
                    run.ends.await(100, TimeUnit.MILLISECONDS);
                }
                break;
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (dead.get()) {
            mine.forEach(k -> end(k, o -> o.fail(death.join())));
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private void write(JsonWriter json, ModelRequest r, long key, List<Chunk> chunks) {
        InferenceRequest request = r.request();
        json.beginObject().name("k").value(key).name("i").beginArray();
        for (Tensor t : request.inputs()) {
            place(json, t, chunks);
        }
        json.endArray().name("o").beginArray();
        r.outputs().forEach(json::value);
        json.endArray();
        if (!request.id().isEmpty()) {
            json.name("id").value(request.id());
        }
        if (!request.parameters().isEmpty()) {
            json.name("p");
            Frames.write(json, request.parameters());
        }
        long micros = request.options().timeoutNanos() / 1000;
        if (micros > 0) {
            json.name("s").value(micros);
        }
        Sequence sequence = request.options().sequence();
        if (sequence != null) {
            json.name("g")
                    .value((sequence.start() ? 1 : 0) | (sequence.end() ? 2 : 0))
                    .name("c");
            if (sequence.id() instanceof Long id) {
                json.unsignedValue(id);
            } else {
                json.value(sequence.id().toString());
            }
        }
        json.endObject();
    }

    /** Copies a tensor to where the worker sees it and says where that is. */
    void place(JsonWriter json, Tensor t, List<Chunk> chunks) {
        Frames.head(json, t);
        if (t.byteLength() == 0) {
            json.value(0).value(0).value(0).endArray();
            return;
        }
        Chunk chunk = arena.take(t.byteLength());
        chunks.add(chunk);
        chunk.slice(0, t.byteLength()).put(t.buffer());
        json.value(chunk.slab()).value(chunk.at()).value(t.byteLength()).endArray();
    }

    private void end(long key, java.util.function.Consumer<OpenRequest> how) {
        OpenRequest o = open.remove(key);
        if (o != null) {
            how.accept(o);
        }
    }

    private void done(Map<String, Object> frame) {
        String error = Frames.string(frame, "e");
        for (Object key : Frames.list(frame, "ks")) {
            end((Long) key, o -> o.fail(ServingException.of(ErrorCode.INTERNAL, error)));
        }
        for (Object key : Frames.list(frame, "again")) {
            end((Long) key, o -> o.end(o.request()::reschedule));
        }
        for (Object answer : Frames.list(frame, "r")) {
            Map<String, Object> a = Frames.map(answer);
            end(Frames.number(a, "k", 0), o -> answer(o, a, true));
        }
    }

    /** One answer of the model to one request. */
    private void answer(OpenRequest o, Map<String, Object> a, boolean last) {
        if (a.get("e") instanceof List<?> error) {
            o.fail(Questions.failure(error));
            return;
        }
        if (!a.containsKey("o")) {
            if (last) {
                o.end(o.request()::finish);
            }
            return;
        }
        List<Tensor> outputs;
        try {
            outputs = peers.tensors(Frames.list(a, "o"));
        } catch (ServingException e) {
            o.fail(ServingException.of(ErrorCode.INTERNAL, "model '" + model + "': " + e.getMessage()));
            return;
        }
        Map<String, Object> parameters = Frames.map(a.get("p"));
        if (last) {
            boolean[] taken = new boolean[1];
            o.end(() -> {
                taken[0] = true;
                o.request().complete(outputs, parameters);
            });
            if (!taken[0]) {
                Tensor.closeAll(outputs);
            }
        } else if (o.ended()) {
            Tensor.closeAll(outputs);
        } else {
            o.request().respond(outputs, parameters);
        }
    }

    /** An answer through a response sender. */
    private void respond(Map<String, Object> frame) {
        long key = Frames.number(frame, "k", 0);
        boolean last = Frames.yes(frame, "z");
        OpenRequest o = open.get(key);
        if (o == null) {
            peers.discard(Frames.list(frame, "o"));
            return;
        }
        if (decoupled && last && frame.containsKey("o")) {
            // The engine takes what is last as an answer like the others, and the end for itself.
            answer(o, frame, false);
            end(key, r -> r.end(r.request()::finish));
        } else if (decoupled) {
            answer(o, frame, last);
        } else if (frame.containsKey("o") || frame.containsKey("e")) {
            end(key, r -> answer(r, frame, true));
        } else {
            end(key, r -> r.end(r.request()::finish));
        }
        if (o.ended()) {
            open.remove(key);
        }
    }

    boolean cancelled(long key) {
        OpenRequest o = open.get(key);
        return o == null || o.ended() || o.request().cancelled();
    }

    // ------------------------------------------------------------------ frames

    private void announce(int number, Path file, int size) {
        JsonWriter json = new JsonWriter(128);
        Frames.write(json, Map.of("t", "seg", "i", (long) number, "path", file.toString(), "size", (long) size));
        // First of all: the frame that makes use of it comes behind.
        outgoing.add(Frames.framed(json));
    }

    /** Tells which of the worker's chunks are free again, as part of a frame. */
    private void writeFreed(JsonWriter json) {
        List<int[]> freed = peers.takeFreed();
        if (!freed.isEmpty()) {
            json.name("free").beginArray();
            for (int[] place : freed) {
                json.beginArray().value(place[0]).value(place[1]).endArray();
            }
            json.endArray();
        }
    }

    private void flushFreed() {
        if (!dead.get()) {
            JsonWriter json = new JsonWriter(1024);
            json.beginObject().name("t").value("free");
            writeFreed(json);
            json.endObject();
            send(Frames.framed(json), false);
        }
    }

    /**
     * Sends a frame; the order of calls is the order of frames.
     *
     * @param direct whether this thread may block until the worker reads
     */
    void send(ByteBuffer frame, boolean direct) {
        outgoing.add(frame);
        if (direct) {
            drain();
        } else {
            try {
                writer.execute(this::drain);
            } catch (java.util.concurrent.RejectedExecutionException e) {
                outgoing.clear();
            }
        }
    }

    private void drain() {
        writing.lock();
        try {
            for (ByteBuffer frame = outgoing.poll(); frame != null; frame = outgoing.poll()) {
                while (frame.hasRemaining()) {
                    channel.write(frame);
                }
            }
        } catch (IOException e) {
            LOG.log(System.Logger.Level.DEBUG, label + ": writing to it failed", e);
            process.kill();
        } finally {
            writing.unlock();
        }
    }

    private void read() {
        try {
            JsonReader json = new JsonReader();
            ByteBuffer in = ByteBuffer.allocate(1 << 16).order(ByteOrder.LITTLE_ENDIAN);
            byte[] body = new byte[1 << 12];
            while (true) {
                in.flip();
                while (in.remaining() >= 4 && in.remaining() - 4 >= in.getInt(in.position())) {
                    int length = in.getInt();
                    if (body.length < length + JsonReader.SLACK) {
                        body = new byte[length * 2 + JsonReader.SLACK];
                    }
                    in.get(body, 0, length);
                    json.reset(body, 0, length);
                    Object frame = Frames.read(json);
                    handle(Frames.map(Objects.requireNonNull(frame, "frame")));
                }
                int needed = in.remaining() >= 4 ? in.getInt(in.position()) : 0;
                if (needed < 0 || needed > MAX_FRAME) {
                    throw new IOException("a frame of " + needed + " bytes");
                }
                in.compact();
                if (needed + 4 > in.capacity()) {
                    in = ByteBuffer.allocate(needed * 2)
                            .order(ByteOrder.LITTLE_ENDIAN)
                            .put(in.flip());
                }
                if (channel.read(in) < 0) {
                    throw new EOFException("it has closed its socket");
                }
            }
        } catch (IOException | RuntimeException e) {
            if (!dead.get() && !(e instanceof IOException)) {
                LOG.log(System.Logger.Level.ERROR, label + ": it said what cannot be understood", e);
                process.kill();
            }
            die(null);
        }
    }

    private void handle(Map<String, Object> frame) {
        for (Object place : Frames.list(frame, "f")) {
            List<?> p = (List<?>) place;
            Chunk chunk = arena.at(((Long) p.get(0)).intValue(), ((Long) p.get(1)).intValue());
            if (chunk != null) {
                chunk.release();
            }
        }
        for (Object key : Frames.list(frame, "x")) {
            questions.drop((Long) key);
        }
        if (frame.get("c") instanceof List<?> counted) {
            metrics.count(counted);
        }
        switch (Frames.string(frame, "t")) {
            case "done":
                Run run = running;
                if (run != null) {
                    synchronized (run) {
                        run.result = frame;
                        run.notifyAll();
                    }
                }
                break;
            case "late":
                // Of a coroutine that has gone on after its execute.
                done(frame);
                break;
            case "resp":
                respond(frame);
                break;
            case "ask":
                questions.ask(frame);
                break;
            case "drop":
                questions.drop(Frames.number(frame, "k", 0));
                break;
            case "cancelled":
                questions.value(frame, cancelled(Frames.number(frame, "k", 0)));
                break;
            case "control":
                questions.control(frame);
                break;
            case "metric":
                questions.metric(frame);
                break;
            case "counted":
                // Said above.
                break;
            case "ready":
                ready = Frames.yes(frame, "v");
                asked.set(false);
                break;
            case "seg":
                String path = Frames.string(frame, "path");
                peers.map((int) Frames.number(frame, "i", 0), Path.of(path), (int) Frames.number(frame, "size", 0));
                JsonWriter mapped = new JsonWriter(128);
                Frames.write(mapped, Map.of("t", "mapped", "path", path));
                send(Frames.framed(mapped), false);
                break;
            case "log":
                LOG.log(
                        LEVELS.getOrDefault((int) Frames.number(frame, "l", 1), System.Logger.Level.INFO),
                        label + ": " + Frames.string(frame, "m"));
                break;
            case "hello":
                LOG.log(
                        System.Logger.Level.DEBUG,
                        label + ": Python " + Frames.string(frame, "python") + ", process " + process.pid());
                break;
            default:
                CompletableFuture<Map<String, Object>> waiting = reply;
                if (waiting != null) {
                    waiting.complete(frame);
                }
        }
    }
}
