// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.kubeconfig;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ServingException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Kubeconfig files, and which target a command line and an environment name. */
class KubeconfigTest {
    @TempDir
    @SuppressWarnings("NullAway.Init") // set by JUnit
    private Path dir;

    private Path file(String name, String text) throws IOException {
        Path path = dir.resolve(name);
        Files.createDirectories(path.getParent());
        return Files.writeString(path, text);
    }

    private static String config(String cluster, String user) {
        return "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {" + cluster + "}}]\n"
                + "users: [{name: u, user: {" + user + "}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
                + "current-context: x\n";
    }

    private KubeContext read(String cluster, String user) throws IOException {
        return new Kubeconfig(List.of(file("config", config(cluster, user)))).context(null);
    }

    @Test
    void filesAreJoinedAndTheFirstEntryOfANameCounts() throws Exception {
        Path first = file("a/config", """
            contexts:
            - {name: one, context: {cluster: c, user: u, namespace: team}}
            users: [{name: u, user: {tokenFile: token}}]
            """);
        Path second = file("b/config", """
            current-context: two
            clusters: [{name: c, cluster: {server: "https://b:6443/k8s/", proxy-url: "http://proxy:3128"}}]
            contexts:
            - {name: one, context: {cluster: none}}
            - {name: two, context: {cluster: c, user: u}}
            users: [{name: u, user: {token: other}}]
            """);
        Kubeconfig joined = new Kubeconfig(List.of(first, dir.resolve("missing"), second));
        KubeContext one = joined.context("one");
        assertThat(one.namespace()).isEqualTo("team");
        assertThat(one.cluster().server().url()).isEqualTo("https://b:6443/k8s");
        assertThat(one.cluster().proxy()).hasToString("proxy/<unresolved>:3128");
        assertThat(one.user().tokenFile()).isEqualTo(dir.resolve("a/token"));
        assertThat(one.user().token()).isNull();
        KubeContext current = joined.context(null);
        assertThat(current.name()).isEqualTo("two");
        assertThat(current.namespace()).isEqualTo("default");
        assertThatThrownBy(() -> joined.context("tow"))
                .hasMessageContaining("has no context \"tow\"")
                .extracting(e -> ((ServingException) e).remedy())
                .asString()
                .contains("two");
    }

    @Test
    void whatIsNotSupportedIsRefusedByName() throws Exception {
        assertThat(read("server: 'https://h'", "").user().shown())
                .isEqualTo("requests without credentials of the user \"u\"");
        String server = "server: 'https://h'";
        refused("tls-server-name", server + ", tls-server-name: n", "");
        refused("proxy-url of the form socks5://", server + ", proxy-url: 'socks5://h:1'", "");
        refused("user:password@", server + ", proxy-url: 'http://me:secret@h:1'", "");
        refused("a server that is not an address", "server: 'h h'", "");
        refused("certificate-authority-data that is not Base64", server + ", certificate-authority-data: '!'", "");
        refused("cannot be read: NoSuchFileException", server + ", certificate-authority: ca.crt", "");
        refused("auth-provider", server, "auth-provider: {name: gcp}");
        refused("client-certificate alone", server, "client-certificate-data: YQ==");
        refused("has token and username", server, "token: t, username: n, password: p");
        refused("v1alpha1", server, "exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: c}");
        refused("without interactiveMode", server, "exec: {apiVersion: client.authentication.k8s.io/v1, command: c}");
        refused(
                "interactiveMode: Often",
                server,
                "exec: {apiVersion: client.authentication.k8s.io/v1, command: c, interactiveMode: Often}");
        refused("without command", server, "exec: {apiVersion: client.authentication.k8s.io/v1beta1}");
        assertThatThrownBy(() -> new Kubeconfig(List.of(file("pod.yaml", "apiVersion: v1\nkind: Pod\n"))))
                .hasMessageContaining("is not a kubeconfig: it has v1 Pod");
        assertThatThrownBy(() -> new Kubeconfig(List.of(dir.resolve("none")))).hasMessageContaining("does not exist");
    }

    private void refused(String why, String cluster, String user) {
        assertThatThrownBy(() -> read(cluster, user))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining(why)
                .hasMessageNotContaining("secret");
    }

    @Command
    private static final class Options implements Runnable {
        @Mixin
        private final KubeconfigOptions kubeconfig = new KubeconfigOptions();

        @Option(names = "--server")
        String server = "";

        @Override
        public void run() {
            throw new AssertionError("parsed only, with --server " + server);
        }
    }

    private static boolean cluster(Map<String, String> environment, Map<String, String> defaults, String... words) {
        Options options = new Options();
        CommandLine command = new CommandLine(options)
                .setDefaultValueProvider(arg ->
                        arg instanceof CommandLine.Model.OptionSpec option ? defaults.get(option.longestName()) : null);
        return options.kubeconfig.chosen(command.parseArgs(words), environment);
    }

    @Test
    void theCommandLineWinsOverTheEnvironmentAndNothingIsGuessed() {
        Map<String, String> none = Map.of();
        Map<String, String> file = Map.of("--kubeconfig", "f");
        assertThat(cluster(none, none)).isFalse();
        assertThat(cluster(Map.of("KUBECONFIG", "f"), none)).isFalse();
        assertThat(cluster(Map.of("KUBECONFIG", "f"), none, "--context", "x")).isTrue();
        assertThat(cluster(Map.of("NEREID_CONTROL", "http://h"), none, "--kubeconfig", "f"))
                .isTrue();
        assertThat(cluster(Map.of("NEREID_KUBECONFIG", "f"), file)).isTrue();
        assertThat(cluster(Map.of("NEREID_KUBECONFIG", "f"), file, "--server", "http://h"))
                .isFalse();
        assertThatThrownBy(() -> cluster(none, none, "--server", "http://h", "--context", "x"))
                .hasMessageContaining("both --server and --context are given");
        assertThatThrownBy(() -> cluster(Map.of("NEREID_CONTROL", "http://h"), file))
                .hasMessageContaining("both NEREID_CONTROL and NEREID_KUBECONFIG are set");
    }
}
