// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.protocols.v1.common.V1Options;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ServableId;
import io.nereid.spi.TextTasks;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What is read, sent to the engine in parts, and answered; a model that embeds a text as its length and two more numbers. */
class OpenAiRoutesTest {
    private final FakeEngine engine = new FakeEngine();
    private final FakeClient client =
            new FakeClient(new V1Codec(engine, engine, Runnable::run, V1Options.defaults(Clock.system())));

    @BeforeEach
    void models() {
        engine.parameters = Map.of(TextTasks.TOKENS, 5L);
        add("embedder", TextTasks.EMBED, new TensorSpec("embedding", DataType.FP32, Shape.of(-1, 3)), "TEXT");
        add("wide", TextTasks.EMBED, new TensorSpec("output-0", DataType.FP64, Shape.of(-1, 3)), "TEXT");
        add("ranker", TextTasks.RERANK, new TensorSpec("score", DataType.FP32, Shape.of(-1)), "TEXT", "TEXT_PAIR");
        engine.add("plain", List.of(), List.of());
    }

    private void add(String name, String task, TensorSpec output, String... inputs) {
        engine.add(
                new ModelMetadata(
                        new ServableId(name, 3),
                        "fake",
                        Arrays.stream(inputs)
                                .map(i -> new TensorSpec(i, DataType.BYTES, Shape.of(-1, 1)))
                                .toList(),
                        List.of(output),
                        2,
                        Map.of(TextTasks.PROPERTY, task)),
                request -> answer(request, output));
    }

    private static List<Tensor> answer(InferenceRequest request, TensorSpec output) {
        List<String> last = texts(request.inputs().get(request.inputs().size() - 1));
        if (last.contains("bad")) {
            throw ServingException.invalidArgument("text " + last.indexOf("bad") + " is bad");
        }
        int width = output.shape().rank() == 2 ? 3 : 1;
        double[] numbers = new double[last.size() * width];
        for (int i = 0; i < last.size(); i++) {
            numbers[i * width] = last.get(i).length();
        }
        Shape shape = width == 1 ? Shape.of(last.size()) : Shape.of(last.size(), width);
        return List.of(Tensor.ofDoubles(output.name(), output.dataType(), shape, numbers));
    }

    private static List<String> texts(Tensor tensor) {
        List<String> texts = new ArrayList<>();
        ByteBuffer in = tensor.buffer();
        while (in.hasRemaining()) {
            byte[] text = new byte[in.getInt()];
            in.get(text);
            texts.add(new String(text, StandardCharsets.UTF_8));
        }
        return texts;
    }

    private FakeExchange post(String path, String body) {
        return client.call("POST", path, body.replace('\'', '"'));
    }

    private FakeExchange embed(String fields) {
        return post("/v1/embeddings", "{'model':'embedder'," + fields + "}");
    }

    @Test
    void manyTextsAreSeveralRequestsAndOneAnswerInOrder() {
        String texts =
                IntStream.range(1, 26).mapToObj(n -> "'" + "x".repeat(n) + "'").collect(Collectors.joining(","));
        FakeExchange x = embed("'input':[" + texts + "]");
        assertThat(x.status()).as(x.text()).isEqualTo(200);
        assertThat(engine.requests).hasSize(13);
        assertThat(engine.requests.get(12).inputs().get(0).shape()).isEqualTo(Shape.of(1, 1));
        for (int i = 0; i < 25; i++) {
            assertThat(x.text()).contains("\"index\":" + i + ",\"embedding\":[" + (i + 1) + ".0,0.0,0.0]");
        }
        assertThat(x.text()).endsWith("\"usage\":{\"prompt_tokens\":65,\"total_tokens\":65}}");
    }

    @Test
    void theFailureOfOnePartIsThatOfTheRequestAndSaysWhichTextsItHad() {
        FakeExchange x = embed("'input':['a','b','bad','c','d']");
        assertThat(x.status()).isEqualTo(400);
        assertThat(x.text()).contains("of the texts 2 to 3: text 0 is bad");
        assertThat(engine.requests).hasSize(2);
    }

    @Test
    void tokensAndNumbersInBase64AndFewerDimensions() {
        assertThat(embed("'input':[7,11]").status()).isEqualTo(200);
        assertThat(engine.requests.get(0).parameters())
                .containsEntry(TextTasks.TOKEN_IDS, true)
                .containsEntry(TextTasks.COUNT_TOKENS, true);
        // The length of "7 11", of two texts of tokens, and of a text of one character, whose vector is of length 1.
        assertThat(embed("'input':[7,11]").text()).contains("[4.0,0.0,0.0]");
        assertThat(embed("'input':[[7],[1,2]]").text())
                .contains("[1.0,0.0,0.0]")
                .contains("[3.0,0.0,0.0]");
        assertThat(embed("'input':'x','encoding_format':'base64','dimensions':2,'user':'u'")
                        .text())
                .contains("\"embedding\":\"AACAPwAAAAA=\"");
        assertThat(post("/v1/embeddings", "{'model':'wide','input':'xy'}").text())
                .contains("[2.0,0.0,0.0]");
        engine.parameters = Map.of();
        assertThat(embed("'input':'x'").text()).endsWith("\"model\":\"embedder\"}");
    }

    @ParameterizedTest
    @ValueSource(strings = {"/v1/rerank", "/openai/v1/rerank", "/rerank", "/v2/rerank"})
    void documentsAreInTheOrderOfTheirScores(String path) {
        FakeExchange x = post(
                path, "{'model':'ranker','query':'q','documents':['xx',{'text':'xxx','id':9},'x','yy'],'top_n':3}");
        assertThat(x.status()).as(x.text()).isEqualTo(200);
        String second = path.equals("/v2/rerank") ? "" : ",\"document\":{\"text\":\"xxx\",\"id\":9}";
        assertThat(x.text())
                .contains("\"results\":[{\"index\":1,\"relevance_score\":3.0" + second + "},{\"index\":0,")
                .contains("{\"index\":3,\"relevance_score\":2.0")
                .doesNotContain("\"index\":2")
                .endsWith(
                        "\"usage\":{\"prompt_tokens\":10,\"total_tokens\":10},\"meta\":{\"tokens\":{\"input_tokens\":10}}}");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "/v1/embeddings|{'model':'embedder'}|400|field 'input' is missing",
                "/v1/embeddings|{'model':'embedder','input':[]}|400|field 'input' is empty",
                "/v1/embeddings|{'model':'embedder','input':['a',1]}|400|field 'input' is an array",
                "/v1/embeddings|{'model':'embedder','input':[[]]}|400|field 'input' is an array",
                "/v1/embeddings|{'model':'embedder','input':'x','dimensions':4}|400|at most 3",
                "/v1/embeddings|{'model':'embedder','input':'x','dimensions':0}|400|a whole number >= 1",
                "/v1/embeddings|{'model':'embedder','input':'x','encoding_format':'int8'}|400|float or base64",
                "/v1/embeddings|{'model':'embedder','input':'x','imput':1}|400|did you mean 'input'?",
                "/v1/embeddings|{'input':'x'}|400|field 'model' is missing",
                "/v1/embeddings|[]|400|not a JSON object",
                "/v1/embeddings|{|400|",
                "/v1/embeddings|{'model':'plain','input':'x'}|400|does not embed texts (it has /v2/models/plain/infer",
                "/v1/embeddings|{'model':'ranker','input':'x'}|400|it reranks documents",
                "/v1/embeddings|{'model':'none','input':'x'}|404|model_not_found",
                "/v1/rerank|{'model':'embedder','query':'q','documents':['x']}|400|does not rerank documents",
                "/v1/rerank|{'model':'ranker','query':'q','documents':[]}|400|field 'documents' is empty",
                "/v1/rerank|{'model':'ranker','query':'q','documents':['x',{'title':'t'}]}|400|document 1 has no text",
                "/v1/rerank|{'model':'ranker','documents':['x']}|400|field 'query' is missing",
                "/v1/rerank|{'model':'ranker','query':'q','documents':['x'],'max_tokens_per_doc':9}|400|is not supported",
            })
    void wrongRequestsAreRefusedInOpenAisForm(String path, String body, int status, String message) {
        FakeExchange x = post(path, body);
        assertThat(x.status()).as(x.text()).isEqualTo(status);
        assertThat(x.text())
                .startsWith("{\"error\":{\"message\":\"")
                .contains("\"type\":\"invalid_request_error\",\"param\":null,\"code\":")
                .contains(message == null ? "" : message);
    }

    @Test
    void bothListsHaveTheModelsWithATask() {
        String data = "\"object\":\"list\",\"data\":[{\"id\":\"embedder\",\"object\":\"model\",\"created\":";
        assertThat(client.call("GET", "/v1/models", "").text())
                .startsWith("{\"models\":[\"embedder\",\"plain\",\"ranker\",\"wide\"]," + data)
                .doesNotContain("\"id\":\"plain\"");
        assertThat(client.call("GET", "/openai/v1/models", "").text()).startsWith("{" + data);
        assertThat(client.call("GET", "/openai/v1/models/ranker", "").text()).startsWith("{\"id\":\"ranker\"");
    }

    @Test
    void errorsKeepTheirStatus() {
        engine.add(
                new ModelMetadata(
                        new ServableId("busy", 3),
                        "fake",
                        List.of(new TensorSpec("TEXT", DataType.BYTES, Shape.of(-1, 1))),
                        List.of(new TensorSpec("embedding", DataType.FP32, Shape.of(-1, 3))),
                        2,
                        Map.of(TextTasks.PROPERTY, TextTasks.EMBED)),
                request -> {
                    throw ServingException.of(ErrorCode.RESOURCE_EXHAUSTED, "the queue is full");
                });
        FakeExchange x = post("/v1/embeddings", "{'model':'busy','input':'x'}");
        assertThat(x.status()).isEqualTo(429);
        assertThat(x.text()).contains("\"type\":\"rate_limit_error\",\"param\":null,\"code\":\"rate_limit_exceeded\"");
    }
}
