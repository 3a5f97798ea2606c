// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.openai;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.JsonValues;
import io.nereid.json.JsonWriter;
import io.nereid.protocols.v1.openai.TextRunner.Result;
import io.nereid.protocols.v1.openai.TextRunner.Texts;
import io.nereid.spi.TextTasks;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;

/**
 * Reranking as Cohere, Jina and vLLM have it: the documents in the order of their scores for a query. Documents are strings, or objects
 * with a string {@code text}, which alone is scored. Thread-safe: immutable.
 */
final class RerankHandler {
    private static final String MODEL = "model";
    private static final String QUERY = "query";
    private static final String DOCUMENTS = "documents";
    private static final String TOP = "top_n";
    private static final String RETURNED = "return_documents";
    private static final List<String> KNOWN = List.of(MODEL, QUERY, DOCUMENTS, TOP, RETURNED);

    private final TextRunner runner;

    RerankHandler(TextRunner runner) {
        this.runner = runner;
    }

    private record Match(int index, float score) {}

    /**
     * Handles an exchange; the response is sent now or later.
     *
     * @param returned whether the response has the documents where the request does not say it
     */
    void start(HttpExchange x, boolean returned) {
        BodyFields body = new BodyFields(x.body(), KNOWN);
        String model = body.required(MODEL);
        String query = body.required(QUERY);
        int top = body.number(TOP, 0, 0);
        boolean documents = body.flag(RETURNED, returned);
        if (!(body.get(DOCUMENTS) instanceof List<?> list) || list.isEmpty()) {
            throw body.wrong(DOCUMENTS, "a list that is not empty of strings, or of objects with a string 'text'");
        }
        List<byte[]> queries = new ArrayList<>();
        List<byte[]> texts = new ArrayList<>();
        byte[] first = query.getBytes(StandardCharsets.UTF_8);
        for (int i = 0; i < list.size(); i++) {
            Object text = list.get(i) instanceof Map<?, ?> document ? document.get("text") : list.get(i);
            if (!(text instanceof String string)) {
                throw ServingException.invalidArgument(
                        "document " + i + " has no text (expected: a string, or an object with a string 'text')",
                        "send the text of each document");
            }
            queries.add(first);
            texts.add(string.getBytes(StandardCharsets.UTF_8));
        }
        runner.run(x, model, TextTasks.RERANK, new Texts(queries, texts, false), r -> {
            return encode(model, r, documents ? list : List.of(), top);
        });
    }

    private static HttpReply encode(String model, Result result, List<?> documents, int top) {
        List<Match> matches = new ArrayList<>();
        for (int i = 0; i < result.rows().length; i++) {
            float score = result.rows()[i][0];
            if (!Float.isFinite(score)) {
                throw ServingException.of(
                        ErrorCode.INTERNAL,
                        "model '" + model + "' returned a score that is not finite",
                        "check the weights of the model");
            }
            matches.add(new Match(i, score));
        }
        // Stable: of equal scores the earlier document comes first.
        matches.sort(Comparator.comparingDouble((Match m) -> -m.score));
        JsonWriter to = new JsonWriter(1024);
        to.beginObject().name("object").value("list").name(MODEL).value(model);
        to.name("results").beginArray();
        int count = top == 0 ? matches.size() : Math.min(top, matches.size());
        for (Match match : matches.subList(0, count)) {
            to.beginObject().name("index").value(match.index);
            to.name("relevance_score").value(match.score);
            if (!documents.isEmpty()) {
                to.name("document");
                Object document = documents.get(match.index);
                JsonValues.write(to, document instanceof String ? Map.of("text", document) : document);
            }
            to.endObject();
        }
        to.endArray();
        EmbeddingHandler.usage(to, result);
        if (result.tokens() >= 0) {
            to.name("meta").beginObject().name("tokens").beginObject();
            to.name("input_tokens").value(result.tokens()).endObject().endObject();
        }
        to.endObject();
        return HttpReply.json(200, to.array(), to.length());
    }
}
