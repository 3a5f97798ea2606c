// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.grpc;

import com.google.protobuf.Message;
import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.base.access.Permission;
import io.nereid.observe.ModelStatisticsSnapshot;
import io.nereid.observe.ModelStatisticsSnapshot.Total;
import io.nereid.protocols.v2.codec.CodecContext;
import io.nereid.protocols.v2.codec.ModelReferences;
import io.nereid.protocols.v2.codec.RepositoryIndex;
import io.nereid.protocols.v2.proto.OpenInference.InferBatchStatistics;
import io.nereid.protocols.v2.proto.OpenInference.InferResponseStatistics;
import io.nereid.protocols.v2.proto.OpenInference.InferStatistics;
import io.nereid.protocols.v2.proto.OpenInference.LogSettingsRequest;
import io.nereid.protocols.v2.proto.OpenInference.LogSettingsResponse;
import io.nereid.protocols.v2.proto.OpenInference.MemoryUsage;
import io.nereid.protocols.v2.proto.OpenInference.ModelStatistics;
import io.nereid.protocols.v2.proto.OpenInference.ModelStatisticsRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelStatisticsResponse;
import io.nereid.protocols.v2.proto.OpenInference.StatisticDuration;
import io.nereid.protocols.v2.proto.OpenInference.TraceSettingRequest;
import io.nereid.protocols.v2.proto.OpenInference.TraceSettingResponse;
import io.nereid.spi.ModelRef;
import io.nereid.transport.api.GrpcCall;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The gRPC handlers of Triton's statistics, trace and logging extensions. Thread-safe. */
final class GrpcObservability {
    private final CodecContext context;

    GrpcObservability(CodecContext context) {
        this.context = context;
    }

    Message statistics(GrpcCall call, ModelStatisticsRequest request) {
        List<ModelStatisticsSnapshot> reports;
        String named = request.getName();
        call.require(Permission.OBSERVE, named.isEmpty() ? null : named);
        if (request.getName().isEmpty()) {
            reports = RepositoryIndex.visible(context.observation.statistics(null, ModelRef.ANY), call.caller());
        } else {
            ModelRef model = ModelReferences.reference(request.getName(), request.getVersion());
            reports = context.observation.statistics(model.model(), model.version());
        }
        ModelStatisticsResponse.Builder response = ModelStatisticsResponse.newBuilder();
        reports.forEach(report -> response.addModelStats(modelStatistics(report)));
        return response.build();
    }

    private static ModelStatistics modelStatistics(ModelStatisticsSnapshot report) {
        ModelStatistics.Builder stats = ModelStatistics.newBuilder()
                .setName(report.model())
                .setVersion(ModelReferences.unversioned(report.version()) ? "" : Long.toString(report.version()))
                .setLastInference(report.lastInferenceMillis())
                .setInferenceCount(report.inferences())
                .setExecutionCount(report.executions())
                .setInferenceStats(InferStatistics.newBuilder()
                        .setSuccess(total(report.success()))
                        .setFail(total(report.failure()))
                        .setQueue(total(report.queue()))
                        .setComputeInput(total(report.computeInput()))
                        .setComputeInfer(total(report.computeInfer()))
                        .setComputeOutput(total(report.computeOutput()))
                        .setCacheHit(total(report.cacheHit()))
                        .setCacheMiss(total(report.cacheMiss())));
        for (ModelStatisticsSnapshot.Batch batch : report.batches()) {
            stats.addBatchStats(InferBatchStatistics.newBuilder()
                    .setBatchSize(batch.size())
                    .setComputeInput(total(batch.computeInput()))
                    .setComputeInfer(total(batch.computeInfer()))
                    .setComputeOutput(total(batch.computeOutput())));
        }
        report.responses()
                .forEach((number, response) -> stats.putResponseStats(
                        number,
                        InferResponseStatistics.newBuilder()
                                .setComputeInfer(total(response.computeInfer()))
                                .setComputeOutput(total(response.computeOutput()))
                                .setSuccess(total(response.success()))
                                .setFail(total(response.failure()))
                                .setEmptyResponse(total(response.empty()))
                                .setCancel(total(response.cancel()))
                                .build()));
        for (ModelStatisticsSnapshot.Memory memory : report.memory()) {
            stats.addMemoryUsage(MemoryUsage.newBuilder()
                    .setType(memory.type())
                    .setId(memory.id())
                    .setByteSize(memory.bytes()));
        }
        return stats.build();
    }

    private static StatisticDuration total(Total total) {
        return StatisticDuration.newBuilder()
                .setCount(total.count())
                .setNs(total.nanos())
                .build();
    }

    /** Reads or updates trace settings; a setting without values is cleared. */
    Message trace(GrpcCall call, TraceSettingRequest request) {
        String model = null;
        String named = request.getModelName();
        if (request.getSettingsMap().isEmpty()) {
            call.require(Permission.OBSERVE, named.isEmpty() ? null : named);
        } else {
            call.require(Permission.CONFIGURE_OBSERVE, named.isEmpty() ? Caller.ALL : named);
        }
        if (!request.getModelName().isEmpty()) {
            model = context.engine
                    .metadata(ModelReferences.reference(request.getModelName(), ""))
                    .id()
                    .model();
        }
        Map<String, @Nullable List<String>> changes = new LinkedHashMap<>();
        request.getSettingsMap()
                .forEach((name, value) ->
                        changes.put(name, value.getValueCount() == 0 ? null : List.copyOf(value.getValueList())));
        Map<String, List<String>> settings = changes.isEmpty()
                ? context.observation.traceSettings(model)
                : context.observation.updateTraceSettings(model, changes);
        TraceSettingResponse.Builder response = TraceSettingResponse.newBuilder();
        settings.forEach((name, values) -> response.putSettings(
                name,
                TraceSettingResponse.SettingValue.newBuilder()
                        .addAllValue(values)
                        .build()));
        return response.build();
    }

    Message log(GrpcCall call, LogSettingsRequest request) {
        if (request.getSettingsMap().isEmpty()) {
            call.require(Permission.OBSERVE, null);
        } else {
            call.require(Permission.CONFIGURE_OBSERVE, Caller.ALL);
        }
        Map<String, Object> changes = new LinkedHashMap<>();
        request.getSettingsMap().forEach((name, value) -> changes.put(name, value(name, value)));
        Map<String, Object> settings =
                changes.isEmpty() ? context.observation.logSettings() : context.observation.updateLogSettings(changes);
        LogSettingsResponse.Builder response = LogSettingsResponse.newBuilder();
        settings.forEach((name, value) -> {
            LogSettingsResponse.SettingValue.Builder shown = LogSettingsResponse.SettingValue.newBuilder();
            if (value instanceof Boolean b) {
                shown.setBoolParam(b);
            } else if (value instanceof Long n) {
                shown.setUint32Param(n.intValue());
            } else {
                shown.setStringParam(String.valueOf(value));
            }
            response.putSettings(name, shown.build());
        });
        return response.build();
    }

    private static Object value(String name, LogSettingsRequest.SettingValue value) {
        return switch (value.getParameterChoiceCase()) {
            case BOOL_PARAM -> value.getBoolParam();
            case UINT32_PARAM -> Integer.toUnsignedLong(value.getUint32Param());
            case STRING_PARAM -> value.getStringParam();
            case PARAMETERCHOICE_NOT_SET ->
                throw ServingException.invalidArgument("log setting '" + name + "' has no value");
        };
    }
}
