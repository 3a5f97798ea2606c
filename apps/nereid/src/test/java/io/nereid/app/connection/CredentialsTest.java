// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.connection;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpServer;
import io.nereid.access.AccessControl;
import io.nereid.access.AccessOptions;
import io.nereid.access.credential.ApiKey;
import io.nereid.access.credential.ApiKeyFile;
import io.nereid.app.Main;
import io.nereid.base.Clock;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.admission.Admission;
import io.nereid.control.api.admission.AdmissionContext;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.apiserver.ApiServer;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.core.runtime.RuntimeSelection;
import io.nereid.control.store.FileResourceStore;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.server.Server;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** The commands with credentials, against a control API in this process that knows API keys. */
@SuppressWarnings("NullAway.Init") // set before each test
class CredentialsTest {
    private static final String OWN = "0123456789abcdef0123456789abcdef";

    @TempDir
    private Path dir;

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();
    private Path profile;
    private String admin;
    private String client;
    private ResourceStore store;
    private AccessControl access;
    private ApiServer api;
    private Server server;
    private String url;

    @BeforeEach
    void start() throws Exception {
        profile = dir.resolve("profile/credentials.yaml");
        ApiKey.Created first = ApiKey.create("ops", List.of("admin"), Instant.now(), null);
        ApiKey.Created second = ApiKey.create("app", List.of("client"), Instant.now(), null);
        admin = first.text();
        client = second.text();
        Path keys = dir.resolve("keys.json");
        new ApiKeyFile(keys).update(none -> List.of(first.key(), second.key()));
        Files.createDirectories(dir.resolve("control"));
        Files.writeString(dir.resolve("control/control-token"), OWN + "\n");
        store = FileResourceStore.open(dir.resolve("store"), Clock.system());
        api = new ApiServer(
                store,
                new Admission(AdmissionContext.NONE),
                new ApiServer.Options(
                        "test",
                        Clock.system(),
                        (namespace, service, component, most) -> List.of(),
                        service -> RuntimeSelection.of(InferenceService.read(service), RuntimeCatalog.builtIn())));
        access = new AccessControl(
                new AccessOptions(keys, null, false, Set.of(), List.of(), List.of(), null, null, Clock.system())
                        .withToken(OWN));
        server = new Server(
                ServerOptions.builder()
                        .listen("127.0.0.1", 0)
                        .eventLoops(1)
                        .access(access)
                        .build(),
                List.of(api));
        url = "http://127.0.0.1:" + server.start().get(0).getPort();
    }

    @AfterEach
    void stop() {
        api.close();
        server.close();
        access.close();
        store.close();
    }

    /** Runs a command with the profile and the control directory of the test; the tokens are never shown. */
    private int run(String... args) {
        out.getBuffer().setLength(0);
        err.getBuffer().setLength(0);
        CommandLine command = Main.commandLine();
        command.setOut(new PrintWriter(out, true));
        command.setErr(new PrintWriter(err, true));
        String[] all = java.util.Arrays.copyOf(args, args.length + 2);
        all[args.length] = "--credentials";
        all[args.length + 1] = profile.toString();
        int code = command.execute(all);
        assertThat(out + "" + err).doesNotContain(admin, client, OWN);
        return code;
    }

    private int get(String... more) {
        String[] all = new String[5 + more.length];
        List.of("get", "ns", "--server", url, "--control-directory=" + dir.resolve("none"))
                .toArray(all);
        System.arraycopy(more, 0, all, 5, more.length);
        return run(all);
    }

    @Test
    void withoutCredentialsTheErrorNamesTheWaysToGiveThem() {
        assertThat(get()).isEqualTo(1);
        assertThat(err.toString())
                .contains("does not accept requests without credentials")
                .contains("NEREID_TOKEN", "--token-file", "nereid login " + url);
    }

    @Test
    void theTokenComesFromTheCommandLineOrFromAFile() throws Exception {
        Path file = dir.resolve("token");
        Files.writeString(file, admin + "\n");
        assertThat(get("--token", admin)).isZero();
        assertThat(get("--token=@" + file)).isZero();
        assertThat(get("--token", "@" + file)).isZero();
        assertThat(get("--token-file", file.toString())).isZero();
        assertThat(get("--token-file", dir.resolve("absent").toString())).isEqualTo(1);
        assertThat(err.toString()).contains("cannot read the token file '" + dir.resolve("absent") + "'");
        assertThat(get("--token", admin, "--token-file", file.toString())).isEqualTo(1);
        assertThat(err.toString()).contains("both --token and --token-file");
        assertThat(get("--token", "two words")).isEqualTo(1);
        assertThat(err.toString()).contains("--token is not a token").doesNotContain("two words");
    }

    @Test
    void aTokenThatIsNotValidOrMayNotIsToldApart() {
        assertThat(get("--token", "nrd_wrong")).isEqualTo(1);
        assertThat(err.toString())
                .contains("does not accept the token of --token")
                .doesNotContain("nrd_wrong");
        assertThat(get("--token", client)).isEqualTo(1);
        assertThat(err.toString())
                .contains("refuses this with the token of --token")
                .contains("--role");
    }

    @Test
    void loginStoresATokenForItsServerOnlyAndLogoutRemovesIt() throws Exception {
        Path file = dir.resolve("token");
        Files.writeString(file, admin);
        assertThat(run("login", url, "--token-file", file.toString())).isZero();
        assertThat(Files.getPosixFilePermissions(profile)).isEqualTo(PosixFilePermissions.fromString("rw-------"));
        assertThat(get()).isZero();
        assertThat(run("get", "ns", "--server", url.replace("127.0.0.1", "localhost"), "--control-directory=" + dir))
                .isEqualTo(1);
        assertThat(run("logout", url)).isZero();
        assertThat(get()).isEqualTo(1);
        assertThat(run("logout", url)).isEqualTo(1);
        assertThat(err.toString()).contains("no token is stored for " + url);
    }

    @Test
    void loginReadsStandardInputAndRefusesWhatTheServerDoes() {
        InputStream before = System.in;
        try {
            System.setIn(new ByteArrayInputStream("nrd_wrong\n".getBytes(StandardCharsets.UTF_8)));
            assertThat(run("login", url)).isEqualTo(1);
            assertThat(err.toString())
                    .contains("does not accept the given token")
                    .doesNotContain("nrd_wrong");
            assertThat(profile).doesNotExist();
            System.setIn(new ByteArrayInputStream((client + "\n").getBytes(StandardCharsets.UTF_8)));
            assertThat(run("login", url)).isZero();
            assertThat(get()).isEqualTo(1);
            assertThat(err.toString()).contains("refuses this with the token that nereid login has stored");
            System.setIn(new ByteArrayInputStream(new byte[0]));
            assertThat(run("login", url)).isEqualTo(1);
            assertThat(err.toString()).contains("the given token is not a token");
        } finally {
            System.setIn(before);
        }
    }

    @Test
    void theControlTokenIsForThisMachineOnly() {
        assertThat(run(
                        "get",
                        "ns",
                        "--server",
                        url,
                        "--control-directory",
                        dir.resolve("control").toString()))
                .isZero();
        ConnectionOptions options = new ConnectionOptions();
        for (String address : List.of("http://127.0.0.1:1", "localhost", "https://[::1]:1")) {
            assertThat(options.choose(Map.of(), ServerAddress.of(address), null, () -> OWN))
                    .isNotNull();
        }
        for (String address : List.of("http://192.0.2.1:1", "localhost.example.com", "https://127.0.0.1.example:1")) {
            assertThat(options.choose(Map.of(), ServerAddress.of(address), null, () -> OWN))
                    .isNull();
        }
    }

    @Test
    void theCommandLineComesBeforeTheEnvironmentTheProfileAndTheControlToken() {
        ServerAddress here = ServerAddress.of(url);
        CredentialsFile.Entry stored = new CredentialsFile.Entry("kept-token", null);
        Map<String, String> environment = Map.of("NEREID_TOKEN", "variable");
        ConnectionOptions given = new ConnectionOptions();
        new CommandLine(new Holder(given)).parseArgs("--token", "flag");
        ConnectionOptions none = new ConnectionOptions();
        assertThat(given.choose(environment, here, stored, () -> "own").token()).isEqualTo("flag");
        assertThat(none.choose(environment, here, stored, () -> "own").token()).isEqualTo("variable");
        assertThat(none.choose(Map.of("NEREID_TOKEN", ""), here, stored, () -> "own")
                        .token())
                .isEqualTo("kept-token");
        assertThat(none.choose(Map.of(), here, null, () -> "own").token()).isEqualTo("own");
        assertThat(none.choose(Map.of(), here, stored, () -> "own").toString()).doesNotContain("kept-token");
    }

    /** A command with the options. */
    @CommandLine.Command
    @SuppressWarnings("UnusedVariable") // picocli reads the field
    private static final class Holder {
        @CommandLine.Mixin
        private final ConnectionOptions options;

        Holder(ConnectionOptions options) {
            this.options = options;
        }
    }

    @Test
    void aRedirectIsNotFollowed() throws Exception {
        AtomicInteger reached = new AtomicInteger();
        InetSocketAddress any = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
        HttpServer other = HttpServer.create(any, 0);
        other.createContext("/", exchange -> {
            reached.incrementAndGet();
            exchange.sendResponseHeaders(200, -1);
            exchange.close();
        });
        HttpServer redirecting = HttpServer.create(any, 0);
        redirecting.createContext("/", exchange -> {
            exchange.getResponseHeaders()
                    .add("location", "http://127.0.0.1:" + other.getAddress().getPort() + "/");
            exchange.sendResponseHeaders(307, -1);
            exchange.close();
        });
        other.start();
        redirecting.start();
        try {
            String from = "http://127.0.0.1:" + redirecting.getAddress().getPort();
            assertThat(run("models", "--url", from, "--token", admin)).isEqualTo(1);
            assertThat(err.toString()).contains("answered HTTP 307, a redirect");
            assertThat(run("get", "ns", "--server", from, "--token", admin)).isEqualTo(1);
            assertThat(err.toString()).contains("answered HTTP 307, a redirect");
            assertThat(run("login", from, "--token", admin)).isEqualTo(1);
            assertThat(err.toString()).contains("answered HTTP 307, a redirect");
            assertThat(profile).doesNotExist();
            assertThat(reached).hasValue(0);
        } finally {
            other.stop(0);
            redirecting.stop(0);
        }
    }

    @Test
    void whatIsNotTheAddressOfAServerIsRefusedWithoutAPasswordInIt() {
        for (String wrong : List.of("http://", "ftp://h", "http://u:secret@h", "http://h?x", "a b")) {
            assertThat(run("models", "--url", wrong)).isEqualTo(1);
            assertThat(err.toString()).contains("is not a server's address").doesNotContain("secret");
        }
        assertThat(run("models", "--url", url, "--client-cert", "c.pem")).isEqualTo(1);
        assertThat(err.toString()).contains("--client-cert is given alone");
    }
}
