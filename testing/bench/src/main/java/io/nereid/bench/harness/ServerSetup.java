// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.harness;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** The models and options of the measured server. Immutable. */
public enum ServerSetup {
    /** The identity model. */
    IDENTITY {
        @Override
        public ServerProcess start(BenchmarkSettings setting) throws IOException {
            return ServerProcess.nereid(
                    setting.distribution(), RequestBodies.identity(setting.directory("identity")), setting.scratch());
        }
    },
    /** The identity model with a response cache: every request after the first is a hit. */
    CACHED {
        @Override
        public ServerProcess start(BenchmarkSettings setting) throws IOException {
            return ServerProcess.nereid(
                    setting.distribution(),
                    RequestBodies.cached(setting.directory("cached")),
                    setting.scratch(),
                    "--cache-config",
                    "local,size=67108864");
        }

        @Override
        public void check(ServerProcess server) throws IOException, InterruptedException {
            HttpResponse<String> reply = HttpClient.newHttpClient()
                    .send(
                            HttpRequest.newBuilder(URI.create(server.url("/v2/models/m/stats")))
                                    .build(),
                            HttpResponse.BodyHandlers.ofString());
            long all = count(reply.body(), "success");
            long hits = count(reply.body(), "cache_hit");
            if (hits < all * 0.99) {
                throw new IOException("only " + hits + " of " + all + " answers came from the cache");
            }
        }
    },
    /** The example model {@code simple}. */
    SIMPLE {
        @Override
        public ServerProcess start(BenchmarkSettings setting) throws IOException {
            return example(setting, "simple");
        }
    },
    /** The example model {@code minilm}, whose file the build downloads. */
    MINILM {
        @Override
        public ServerProcess start(BenchmarkSettings setting) throws IOException {
            return example(setting, "minilm");
        }

        @Override
        public @Nullable Path missing(BenchmarkSettings setting) {
            Path file = setting.examples().resolve("minilm/1/model.onnx");
            return Files.exists(file) ? null : file;
        }
    };

    /** Starts the server of the settings' distribution. */
    public abstract ServerProcess start(BenchmarkSettings setting) throws IOException;

    /** A file that the models need and that is not there; null when nothing is missing. */
    public @Nullable Path missing(BenchmarkSettings setting) {
        return null;
    }

    /** Verifies after the load that the server did what the scenario measures. */
    public void check(ServerProcess server) throws IOException, InterruptedException {}

    private static ServerProcess example(BenchmarkSettings setting, String model) throws IOException {
        return ServerProcess.nereid(
                setting.distribution(),
                setting.examples(),
                setting.scratch(),
                "--model-control-mode",
                "explicit",
                "--load-model",
                model);
    }

    private static long count(String statistics, String figure) throws IOException {
        Matcher m = Pattern.compile("\"" + figure + "\":\\{\"count\":\"?(\\d+)").matcher(statistics);
        if (!m.find()) {
            throw new IOException("no " + figure + " in " + statistics);
        }
        return Long.parseLong(m.group(1));
    }
}
