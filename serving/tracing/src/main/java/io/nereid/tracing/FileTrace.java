// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tracing;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.json.FloatStyle;
import io.nereid.json.JsonWriter;
import io.nereid.observe.RequestTrace;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The trace of a request, or of one step of an ensemble, that is written to a file in Triton's JSON format. Thread-safe
 * by its own lock.
 */
final class FileTrace implements RequestTrace {
    private final TraceFile file;
    private final TraceSettings settings;
    private final @Nullable FileTrace parent;
    private final long id;

    @GuardedBy("this") private final List<String> names = new ArrayList<>();

    @GuardedBy("this") private final List<Long> times = new ArrayList<>();

    @GuardedBy("this") private final List<Sample> samples = new ArrayList<>();

    @GuardedBy("this") private final List<String[]> attributes = new ArrayList<>();

    @GuardedBy("this") private final List<FileTrace> children = new ArrayList<>();

    @GuardedBy("this") private String model;

    @GuardedBy("this") private long version = -1;

    @GuardedBy("this") private String requestId = "";

    private record Sample(String activity, String name, String type, String shape, String data) {}

    FileTrace(TraceFile file, TraceSettings settings, @Nullable FileTrace parent, String model) {
        this.file = file;
        this.settings = settings;
        this.parent = parent;
        this.model = model;
        this.id = file.nextId();
    }

    @Override
    public synchronized void event(Event event, long nanos) {
        if (settings.timestamps()) {
            names.add(event.name());
            times.add(nanos);
        }
    }

    @Override
    public synchronized void attribute(String name, String value) {
        attributes.add(new String[] {name, value});
    }

    @Override
    public boolean includesTensors() {
        return settings.tensors();
    }

    @Override
    public void tensors(String activity, List<Tensor> tensors) {
        for (Tensor t : tensors) {
            Sample sample = new Sample(
                    activity, t.name(), t.dataType().toString(), TensorFormatter.shape(t), TensorFormatter.values(t));
            synchronized (this) {
                samples.add(sample);
            }
        }
    }

    @Override
    public synchronized void model(String name, long newVersion, String newRequestId) {
        model = name;
        version = newVersion;
        requestId = newRequestId;
    }

    @Override
    public synchronized RequestTrace child(String childModel) {
        FileTrace child = new FileTrace(file, settings, this, childModel);
        children.add(child);
        return child;
    }

    @Override
    public String traceId() {
        return Long.toString(id);
    }

    @Override
    public @Nullable String traceparent() {
        return null;
    }

    @Override
    public void end() {
        if (parent == null) {
            JsonWriter json = new JsonWriter(1024).floatStyle(FloatStyle.SHORTEST);
            json.beginArray();
            write(json);
            json.endArray();
            // Without the brackets: the file holds one array of all traces.
            file.add(
                    new String(json.array(), 1, json.length() - 2, java.nio.charset.StandardCharsets.UTF_8),
                    settings.logFrequency());
        }
    }

    private synchronized void write(JsonWriter json) {
        json.beginObject();
        json.name("id").value(id);
        json.name("model_name").value(model);
        json.name("model_version").value(version);
        if (!requestId.isEmpty()) {
            json.name("request_id").value(requestId);
        }
        if (parent != null) {
            json.name("parent_id").value(parent.id);
        }
        for (String[] attribute : attributes) {
            json.name(attribute[0]).value(attribute[1]);
        }
        json.endObject();
        if (!names.isEmpty()) {
            json.beginObject().name("id").value(id).name("timestamps").beginArray();
            for (int i = 0; i < names.size(); i++) {
                json.beginObject().name("name").value(names.get(i));
                json.name("ns").value(times.get(i).longValue()).endObject();
            }
            json.endArray().endObject();
        }
        for (Sample s : samples) {
            json.beginObject().name("id").value(id).name("activity").value(s.activity);
            json.name("tensor").beginObject().name("name").value(s.name);
            json.name("data").value(s.data).name("shape").value(s.shape);
            json.name("dtype").value(s.type).endObject().endObject();
        }
        for (FileTrace child : children) {
            child.write(json);
        }
    }
}
