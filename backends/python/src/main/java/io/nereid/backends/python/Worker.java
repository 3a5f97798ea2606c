// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import io.nereid.backend.ModelRequest;
import io.nereid.backends.python.SharedMemoryArena.Chunk;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.json.JsonWriter;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.SequenceFlags;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
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
 * The server's side of a worker process, which runs one instance of a Python model. Server and worker exchange frames
 * (see {@link FrameCodec}) over Unix sockets; tensors are in shared memory: an input is copied there once, and an
 * output becomes a response without a copy.
 *
 * <p>Frames to the worker, by {@code t}: {@code load}, {@code init}, {@code fin} (each gets one reply), {@code exec},
 * {@code seg} and {@code mapped} (shared-memory files), {@code free} (chunks that the worker may use again),
 * {@code answer} and {@code value} (replies to calls of the model), {@code ready}, {@code stop} (the clients of an exec
 * have gone). Frames from it: {@code ok} or
 * {@code fail} (the replies), {@code done} (the end of an exec) and {@code late} (a failure after it), {@code resp} (a
 * response through a sender), {@code ask}, {@code drop}, {@code cancelled}, {@code control} and {@code metric} (calls
 * of the model), {@code seg}, {@code counted}, {@code ready}, {@code log}, {@code hello}. Any frame from it may also
 * carry {@code f} (chunks of the server that it has released), {@code u} (requests that the model cannot answer any
 * more), {@code x} (calls that it has abandoned) and {@code c}
 * (updates of custom metrics).
 *
 * <p>A run wakes only the threads that it needs, because there are three sockets: one for the frames to the worker,
 * which no thread of the server reads, since Linux would wake it when the worker takes a frame; one for {@code done},
 * which {@link #execute} reads itself; and one for all other frames from the worker. {@code done} has in {@code q} how
 * many of these the worker has sent before, and each of these has in {@code d} the last exec that had ended:
 * {@link FrameOrder} keeps the order.
 *
 * <p>Threads: one thread reads the third socket and must never block on writing, since the worker may be blocked
 * writing to the server at the same time. {@link #execute} writes directly; other threads hand frames to a writer
 * thread. Frames are queued first and written under a lock, so their order is the order of the calls. Thread-safe,
 * except {@link #execute}, which is called by one thread at a time.
 */
final class Worker {
    private static final System.Logger LOG = System.getLogger("io.nereid.backends.python");
    private static final int FRAME_BUFFER = 1 << 16;
    private static final int RESULT_BUFFER = 1 << 13;
    private static final Map<Integer, System.Logger.Level> LEVELS = Map.of(
            0, System.Logger.Level.DEBUG,
            1, System.Logger.Level.INFO,
            2, System.Logger.Level.WARNING,
            3, System.Logger.Level.ERROR);

    private final PythonModel.Plan plan;
    private final String model;
    private final String label;
    private final boolean decoupled;
    private final PythonSettings settings;
    private final WorkerProcess process;
    private final SocketChannel commands;
    private final FrameReader results;
    private final FrameOrder order = new FrameOrder();
    private final SharedMemoryArena arena;
    private final WorkerSegments peers;
    private final ModelCallbacks callbacks;
    private final CustomMetrics metrics;
    private final ExecutorService reader = Threads.single("python-reader");
    private final ThreadPoolExecutor writer = Threads.pool("python-writer", 1);
    private final ConcurrentLinkedQueue<ByteBuffer> outgoing = new ConcurrentLinkedQueue<>();
    /** The server's shared-memory files. The worker removes their names when it has mapped them, unless it dies first. */
    private final ConcurrentLinkedQueue<Path> announced = new ConcurrentLinkedQueue<>();

    private final ReentrantLock writing = new ReentrantLock();
    private final AtomicLong keys = new AtomicLong();
    private final Map<Long, PendingRequest> open = new ConcurrentHashMap<>();
    private final AtomicBoolean dead = new AtomicBoolean();
    private final CompletableFuture<ServingException> death = new CompletableFuture<>();
    private volatile @Nullable CompletableFuture<Map<String, Object>> reply;
    /** The number of the exec in progress, or of the last one. */
    private volatile int running;

    private volatile boolean executing;
    /**
     * Shared memory in which the worker notes the number of the exec that it has begun, so that the server can tell
     * after its death, without another frame for each exec.
     */
    private final Chunk begun;

    /** The last exec; used by {@link #execute} alone. */
    private int execs;

    /** The content of {@link #begun} at the worker's death. */
    private volatile int begunAtDeath = Integer.MAX_VALUE;

    private volatile boolean finishing;
    /** Whether the model has {@code is_ready}, its last result, and whether a request for it is in progress. */
    private volatile boolean reportsReadiness;

    private volatile boolean ready = true;
    private final AtomicBoolean readinessPending = new AtomicBoolean();

    /**
     * Takes ownership of a process that has connected, and starts to read.
     *
     * @param label the instance's name, for the log
     */
    Worker(PythonModel.Plan plan, String label, WorkerProcess process) {
        this.plan = plan;
        this.model = plan.id().model();
        this.label = label;
        this.decoupled = plan.decoupled();
        this.settings = plan.settings();
        this.process = process;
        this.commands = process.commands();
        this.results = new FrameReader(process.results(), RESULT_BUFFER);
        this.arena = new SharedMemoryArena(settings, this::announce);
        this.peers = new WorkerSegments(arena, this::flushFreed);
        this.metrics = plan.metrics();
        try {
            this.begun = arena.take(Integer.BYTES);
        } catch (ServingException e) {
            reader.shutdown();
            writer.shutdown();
            process.kill();
            throw e;
        }
        begun.slice(0, Integer.BYTES).putInt(0, 0);
        this.callbacks = new ModelCallbacks(this, plan.engine(), plan.control(), metrics, peers);
        process.onExit(() -> die(null));
        reader.execute(this::read);
    }

    // ------------------------------------------------------------------ life cycle of the model

    /**
     * Sends a command (load, init, fin) and waits for its reply. One command at a time.
     *
     * @return the worker's reply
     * @throws ServingException INVALID_ARGUMENT with the end of the model's stack trace when the command failed
     */
    Map<String, Object> command(Map<String, Object> frame, Duration timeout, String what) {
        CompletableFuture<Map<String, Object>> answer = new CompletableFuture<>();
        reply = answer;
        if (dead.get()) {
            throw death.join();
        }
        JsonWriter json = new JsonWriter(1024);
        FrameCodec.write(json, frame);
        send(FrameCodec.framed(json), true);
        try {
            Map<String, Object> got = answer.get(timeout.toMillis(), TimeUnit.MILLISECONDS);
            if (FrameCodec.string(got, "t").equals("ok")) {
                return got;
            }
            throw plan.failure(what, FrameCodec.string(got, "m"));
        } catch (TimeoutException e) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "model '" + model + "' took longer than " + timeout.toSeconds() + " s to " + what,
                    "increase the limit with --backend-config python,initialize-timeout-seconds=N");
        } catch (ExecutionException e) {
            throw ServingException.from(e.getCause() == null ? e : e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw ServingException.of(ErrorCode.UNAVAILABLE, "starting model '" + model + "' was interrupted");
        } finally {
            reply = null;
        }
    }

    /** Unloads the model: lets it run {@code finalize} within its time limit, then ends the process. */
    void finish() {
        if (!dead.get()) {
            finishing = true;
            try {
                command(Map.of("t", "fin"), settings.finalizeTimeout(), "finalize");
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

    /**
     * Ends the process and everything that waits for it, once.
     *
     * @param known the reason when the server ended it; null when the process ended by itself
     */
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
                    "the Python process of model '" + model + "' ended (" + how + ") before it responded",
                    "the server's log has its output; a new process is started");
        }
        process.kill();
        writer.shutdown();
        reader.shutdown();
        outgoing.clear();
        ServingException failure = reason;
        order.close();
        callbacks.close();
        begunAtDeath =
                begun.slice(0, Integer.BYTES).order(ByteOrder.nativeOrder()).getInt(0);
        open.forEach((key, o) -> {
            // The others are those of the run in progress, whose execute ends them or returns them.
            if (decoupled || o.later()) {
                open.remove(key);
                o.fail(failure);
            }
        });
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
        begun.release();
        arena.close();
        deleteFiles();
        death.complete(failure);
    }

    /** Where the worker notes the exec that it has begun, as file number and offset. */
    List<Object> begunAt() {
        return List.of((long) begun.segment(), (long) begun.at());
    }

    /** Evaluates the worker's reply to {@code init}. */
    void initialised(Map<String, Object> reply) {
        reportsReadiness = reply.containsKey("ready");
        ready = !reportsReadiness || FrameCodec.yes(reply, "ready");
    }

    /** Whether the model has a method {@code is_ready}. */
    boolean reportsReadiness() {
        return reportsReadiness;
    }

    /** The last result of {@code is_ready}; true for a model without it. */
    boolean ready() {
        return ready;
    }

    /** Requests the model's readiness, unless a request is in progress. */
    void requestReadiness() {
        if (reportsReadiness && !dead.get() && !finishing && readinessPending.compareAndSet(false, true)) {
            JsonWriter json = new JsonWriter(32);
            send(FrameCodec.framed(json.beginObject().name("t").value("ready").endObject()), false);
        }
    }

    // ------------------------------------------------------------------ requests

    /**
     * Runs the model on a batch. All requests have ended when this returns, except those that the model answers through
     * a response sender afterwards, and except those that are returned.
     *
     * @return the requests that the worker had not begun when it died, none of a sequence; another worker can run them
     */
    List<ModelRequest> execute(List<ModelRequest> requests) {
        int number = execs + 1;
        List<Long> mine = new ArrayList<>(requests.size());
        JsonWriter json = new JsonWriter(512);
        json.beginObject().name("t").value("exec").name("n").value(number);
        writeFreed(json);
        json.name("r").beginArray();
        for (ModelRequest request : requests) {
            List<Chunk> chunks = new ArrayList<>();
            long key = keys.incrementAndGet();
            try {
                write(json, request, key, chunks);
            } catch (ServingException e) {
                chunks.forEach(Chunk::release);
                if (dead.get()) {
                    return ended(requests, mine, number);
                }
                mine.forEach(k -> end(k, o -> o.fail(e)));
                throw e;
            }
            open.put(key, new PendingRequest(request, chunks));
            mine.add(key);
        }
        json.endArray().endObject();
        execs = number;
        running = number;
        executing = true;
        try {
            if (!dead.get()) {
                send(FrameCodec.framed(json), true);
                await();
            }
            if (!decoupled) {
                for (Long key : mine) {
                    PendingRequest o = open.get(key);
                    if (o != null && !dead.get()) {
                        o.answerLater();
                    }
                }
            }
        } finally {
            executing = false;
            order.runHandled(number);
        }
        return dead.get() && !open.isEmpty() ? ended(requests, mine, number) : List.of();
    }

    /**
     * The worker has died: fails the requests of the run that have not ended, or returns those that it had not begun.
     *
     * @param mine the keys of the first requests; the others have not been sent
     */
    private List<ModelRequest> ended(List<ModelRequest> requests, List<Long> mine, int number) {
        ServingException reason = death.join();
        // The worker notes the numbers in order. Anything but the number before is taken for begun.
        boolean begunByWorker = decoupled || finishing || begunAtDeath != number - 1;
        List<ModelRequest> left = new ArrayList<>();
        for (int i = 0; i < requests.size(); i++) {
            ModelRequest request = requests.get(i);
            boolean again = !begunByWorker && request.request().options().sequence() == null;
            if (i >= mine.size()) {
                if (again) {
                    left.add(request);
                } else {
                    request.fail(reason);
                }
                continue;
            }
            PendingRequest o = open.remove(mine.get(i));
            if (o != null && !again) {
                o.fail(reason);
            } else if (o != null && o.withdraw()) {
                left.add(request);
            }
        }
        return left;
    }

    /**
     * Reads the result of the run and completes the responses that the model's execute returned; those through response
     * senders are completed on the reader thread. The end of the worker ends the wait. So does an
     * interrupt during it, which closes the socket; the engine does not interrupt its threads.
     */
    private void await() {
        boolean interrupted = Thread.interrupted();
        try {
            Map<String, Object> result = result();
            if (result != null && order.awaitFrames(FrameCodec.number(result, "q", 0))) {
                additions(result);
                done(result);
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Waits for the result of the run in progress; null when the worker has ended instead. */
    private @Nullable Map<String, Object> result() {
        try {
            Map<String, Object> result = results.next();
            if (FrameCodec.string(result, "t").equals("done")) {
                return result;
            }
            throw new IllegalStateException("a frame '" + FrameCodec.string(result, "t") + "' instead of a result");
        } catch (IOException | RuntimeException e) {
            lost(e);
            return null;
        }
    }

    /**
     * Stops the run in progress, whose clients have all gone, if the model runs it as a coroutine. Any other execute
     * runs to its end: only ending the process could stop it. Thread-safe.
     */
    void stop() {
        if (executing && !dead.get()) {
            JsonWriter json = new JsonWriter(32);
            json.beginObject().name("t").value("stop").name("n").value(running);
            send(FrameCodec.framed(json.endObject()), false);
        }
    }

    private void write(JsonWriter json, ModelRequest r, long key, List<Chunk> chunks) {
        InferenceRequest request = r.request();
        json.beginObject().name("k").value(key).name("i").beginArray();
        for (Tensor t : request.inputs()) {
            writeTensor(json, t, chunks);
        }
        json.endArray().name("o").beginArray();
        r.outputs().forEach(json::value);
        json.endArray();
        if (!request.id().isEmpty()) {
            json.name("id").value(request.id());
        }
        if (!request.parameters().isEmpty()) {
            json.name("p");
            FrameCodec.write(json, request.parameters());
        }
        long micros = request.options().timeoutNanos() / 1000;
        if (micros > 0) {
            json.name("s").value(micros);
        }
        SequenceFlags sequence = request.options().sequence();
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

    /** Copies a tensor to shared memory and writes its description; the chunk is added to {@code chunks}. */
    void writeTensor(JsonWriter json, Tensor t, List<Chunk> chunks) {
        FrameCodec.head(json, t);
        if (t.byteLength() == 0) {
            json.value(0).value(0).value(0).endArray();
            return;
        }
        Chunk chunk = arena.take(t.byteLength());
        chunks.add(chunk);
        chunk.slice(0, t.byteLength()).put(t.buffer());
        json.value(chunk.segment()).value(chunk.at()).value(t.byteLength()).endArray();
    }

    private void end(long key, java.util.function.Consumer<PendingRequest> how) {
        PendingRequest o = open.remove(key);
        if (o != null) {
            how.accept(o);
        }
    }

    private void done(Map<String, Object> frame) {
        String error = FrameCodec.string(frame, "e");
        for (Object key : FrameCodec.list(frame, "ks")) {
            end(
                    (Long) key,
                    o -> o.fail(
                            o.request().cancelled()
                                    ? ServingException.of(ErrorCode.CANCELLED, "the client has cancelled the request")
                                    : ServingException.of(ErrorCode.INTERNAL, error)));
        }
        for (Object key : FrameCodec.list(frame, "again")) {
            end((Long) key, o -> o.end(o.request()::reschedule));
        }
        for (Object answer : FrameCodec.list(frame, "r")) {
            Map<String, Object> a = FrameCodec.map(answer);
            end(FrameCodec.number(a, "k", 0), o -> answer(o, a, true));
        }
    }

    /** Handles one response of the model to one request. */
    private void answer(PendingRequest o, Map<String, Object> a, boolean last) {
        if (a.get("e") instanceof List<?> error) {
            o.fail(ModelCallbacks.failure(error));
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
            outputs = peers.tensors(FrameCodec.list(a, "o"));
        } catch (ServingException e) {
            o.fail(ServingException.of(ErrorCode.INTERNAL, "model '" + model + "': " + e.getMessage()));
            return;
        }
        Map<String, Object> parameters = FrameCodec.map(a.get("p"));
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

    /** Handles a response that the model sent through a response sender. */
    private void respond(Map<String, Object> frame) {
        long key = FrameCodec.number(frame, "k", 0);
        boolean last = FrameCodec.yes(frame, "z");
        PendingRequest o = open.get(key);
        if (o == null) {
            peers.discard(FrameCodec.list(frame, "o"));
            return;
        }
        if (decoupled) {
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
        PendingRequest o = open.get(key);
        return o == null || o.ended() || o.request().cancelled();
    }

    // ------------------------------------------------------------------ frames

    private void announce(int number, Path file, int size) {
        JsonWriter json = new JsonWriter(128);
        FrameCodec.write(json, Map.of("t", "seg", "i", (long) number, "path", file.toString(), "size", (long) size));
        // Queued, not written: the frame that refers to this file is queued after it by the same thread.
        outgoing.add(FrameCodec.framed(json));
        announced.add(file);
    }

    /** Removes the names of the server's files that the worker has not removed. */
    private void deleteFiles() {
        for (Path file = announced.poll(); file != null; file = announced.poll()) {
            try {
                Files.deleteIfExists(file);
            } catch (IOException e) {
                LOG.log(System.Logger.Level.DEBUG, label + ": left " + file, e);
            }
        }
    }

    /** Adds the worker's chunks that are free again to a frame. */
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
            send(FrameCodec.framed(json), false);
        }
    }

    /**
     * Sends a frame. The order of the calls is the order of the frames.
     *
     * @param direct whether this thread may block until the worker reads; if false, the writer thread writes it
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
                    commands.write(frame);
                }
            }
        } catch (IOException e) {
            LOG.log(System.Logger.Level.DEBUG, label + ": cannot write to the worker", e);
            process.kill();
        } finally {
            writing.unlock();
        }
    }

    private void read() {
        try {
            FrameReader frames = new FrameReader(process.messages(), FRAME_BUFFER);
            while (true) {
                Map<String, Object> frame = frames.next();
                if (frame.get("d") instanceof Long run) {
                    order.awaitRun(run.intValue());
                }
                additions(frame);
                handle(frame);
                order.frameHandled();
            }
        } catch (IOException | RuntimeException e) {
            lost(e);
        }
    }

    /** A socket has ended, or a frame is invalid: ends the worker. */
    private void lost(Exception e) {
        if (!dead.get() && !(e instanceof IOException)) {
            LOG.log(System.Logger.Level.ERROR, label + ": the worker sent an invalid frame", e);
            process.kill();
        }
        die(null);
    }

    /** Handles what any frame may carry beside its own content. */
    private void additions(Map<String, Object> frame) {
        for (Object place : FrameCodec.list(frame, "f")) {
            List<?> p = (List<?>) place;
            Chunk chunk = arena.at(((Long) p.get(0)).intValue(), ((Long) p.get(1)).intValue());
            if (chunk != null) {
                chunk.release();
            }
        }
        for (Object key : FrameCodec.list(frame, "u")) {
            end(
                    (Long) key,
                    o -> o.fail(ServingException.of(
                            ErrorCode.INTERNAL,
                            "model '" + model
                                    + "' has not answered a request: nothing refers to its response sender any more",
                            "send one response with TRITONSERVER_RESPONSE_COMPLETE_FINAL for each request")));
        }
        for (Object key : FrameCodec.list(frame, "x")) {
            callbacks.drop((Long) key);
        }
        if (frame.get("c") instanceof List<?> counted) {
            metrics.count(counted);
        }
    }

    private void handle(Map<String, Object> frame) {
        switch (FrameCodec.string(frame, "t")) {
            case "late":
                // A coroutine of a decoupled model failed after its execute had returned.
                done(frame);
                break;
            case "resp":
                respond(frame);
                break;
            case "ask":
                callbacks.ask(frame);
                break;
            case "drop":
                callbacks.drop(FrameCodec.number(frame, "k", 0));
                break;
            case "cancelled":
                callbacks.value(frame, cancelled(FrameCodec.number(frame, "k", 0)));
                break;
            case "control":
                callbacks.control(frame);
                break;
            case "metric":
                callbacks.metric(frame);
                break;
            case "counted":
                // The updates were applied above.
                break;
            case "ready":
                ready = FrameCodec.yes(frame, "v");
                readinessPending.set(false);
                break;
            case "seg":
                String path = FrameCodec.string(frame, "path");
                peers.map((int) FrameCodec.number(frame, "i", 0), Path.of(path), (int)
                        FrameCodec.number(frame, "size", 0));
                JsonWriter mapped = new JsonWriter(128);
                FrameCodec.write(mapped, Map.of("t", "mapped", "path", path));
                send(FrameCodec.framed(mapped), false);
                break;
            case "log":
                LOG.log(
                        LEVELS.getOrDefault((int) FrameCodec.number(frame, "l", 1), System.Logger.Level.INFO),
                        label + ": " + FrameCodec.string(frame, "m"));
                break;
            case "hello":
                LOG.log(
                        System.Logger.Level.DEBUG,
                        label + ": Python " + FrameCodec.string(frame, "python") + ", process " + process.pid());
                break;
            default:
                CompletableFuture<Map<String, Object>> waiting = reply;
                if (waiting != null) {
                    waiting.complete(frame);
                }
        }
    }
}
