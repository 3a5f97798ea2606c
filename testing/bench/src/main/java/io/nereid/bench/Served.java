// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What Nereid serves, with which options. */
enum Served {
    /** The identity model. */
    IDENTITY {
        @Override
        ServerProcess start(Bench.Setting setting) throws IOException {
            return ServerProcess.nereid(
                    setting.distribution(), Bodies.identity(setting.directory("identity")), setting.scratch());
        }
    },
    /** The identity model with a response cache: every request but the first finds its answer there. */
    CACHED {
        @Override
        ServerProcess start(Bench.Setting setting) throws IOException {
            return ServerProcess.nereid(
                    setting.distribution(),
                    Bodies.cached(setting.directory("cached")),
                    setting.scratch(),
                    "--cache-config",
                    "local,size=67108864");
        }

        @Override
        void check(ServerProcess server) throws IOException, InterruptedException {
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
    };

    abstract ServerProcess start(Bench.Setting setting) throws IOException;

    /** After the load: whether the server did what is measured. */
    void check(ServerProcess server) throws IOException, InterruptedException {}

    private static long count(String statistics, String figure) throws IOException {
        Matcher m = Pattern.compile("\"" + figure + "\":\\{\"count\":\"?(\\d+)").matcher(statistics);
        if (!m.find()) {
            throw new IOException("no " + figure + " in " + statistics);
        }
        return Long.parseLong(m.group(1));
    }
}
