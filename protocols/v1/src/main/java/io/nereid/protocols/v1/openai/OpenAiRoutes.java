// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.openai;

import io.nereid.base.ServingException;
import io.nereid.base.access.Operation;
import io.nereid.protocols.v1.common.V1Options;
import io.nereid.spi.InferenceEngine;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.HttpRoute.HttpHandler;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;

/**
 * The routes for clients of OpenAI, Cohere, Jina and vLLM: embeddings, reranking and, below {@code /openai} as in KServe's servers, the
 * list of models. The model is a field of the body. Errors have OpenAI's form. Thread-safe: immutable.
 */
public final class OpenAiRoutes {
    /** Larger bodies are decoded, and larger responses encoded, on the codec pool. */
    static final int SMALL = 64 << 10;

    private static final String KSERVE = "/openai";

    private final OpenAiModels models;
    private final Executor codecPool;
    private final EmbeddingHandler embeddings;
    private final RerankHandler rerank;

    public OpenAiRoutes(InferenceEngine engine, OpenAiModels models, Executor codecPool, V1Options options) {
        this.models = models;
        this.codecPool = codecPool;
        TextRunner runner = new TextRunner(engine, codecPool, options.timeoutNanos());
        this.embeddings = new EmbeddingHandler(runner, options.floatStyle());
        this.rerank = new RerankHandler(runner);
    }

    /** All routes but the list at {@code /v1/models}, which KServe's clients read as well. */
    public List<HttpRoute> routes() {
        List<HttpRoute> routes = new ArrayList<>();
        for (String prefix : List.of("", KSERVE)) {
            routes.add(post(prefix + "/v1/embeddings", embeddings::start));
            routes.add(post(prefix + "/v1/rerank", x -> rerank.start(x, true)));
        }
        routes.add(post("/rerank", x -> rerank.start(x, true)));
        // Cohere's second version has no documents in its responses.
        routes.add(post("/v2/rerank", x -> rerank.start(x, false)));
        routes.add(HttpRoute.get(KSERVE + "/v1/models", Operation.METADATA, handler(this::list)));
        routes.add(HttpRoute.get(KSERVE + "/v1/models/{model}", Operation.METADATA, handler(this::model)));
        return routes;
    }

    private HttpRoute post(String path, HttpHandler handler) {
        return HttpRoute.post(path, Operation.INFERENCE, handler(x -> {
            if (x.body().size() <= SMALL) {
                handler.handle(x);
                return;
            }
            codecPool.execute(() -> {
                try {
                    handler.handle(x);
                } catch (RuntimeException | OutOfMemoryError e) {
                    x.reply(OpenAiErrors.reply(ServingException.from(e)));
                }
            });
        }));
    }

    /** A handler whose failures have OpenAI's form. */
    private static HttpHandler handler(HttpHandler inner) {
        return new HttpHandler() {
            @Override
            public void handle(HttpExchange x) {
                try {
                    inner.handle(x);
                } catch (ServingException e) {
                    x.reply(OpenAiErrors.reply(e));
                }
            }

            @Override
            public HttpReply denied(ServingException e) {
                return OpenAiErrors.reply(e);
            }
        };
    }

    private void list(HttpExchange x) {
        StringBuilder body = new StringBuilder("{");
        models.list(x.caller(), body);
        x.reply(HttpReply.json(200, body.append("}").toString()));
    }

    private void model(HttpExchange x) {
        x.reply(HttpReply.json(200, models.one(x.pathParameter(0))));
    }
}
