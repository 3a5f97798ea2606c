// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance.api;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.testkit.PluginJarBuilder;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Compares two versions of one class, each compiled from its source. */
class ApiComparisonTest {
    @TempDir
    Path directory;

    private int count;

    private Map<String, Set<String>> signatures(String body) throws Exception {
        Path jar = new PluginJarBuilder()
                .source("p.T", "package p; import java.util.*; import org.jspecify.annotations.*; " + body)
                .build(directory.resolve("v" + count++ + ".jar"));
        try (URLClassLoader loader =
                new URLClassLoader(new URL[] {jar.toUri().toURL()}, getClass().getClassLoader())) {
            return ApiSignatures.of(List.of(loader.loadClass("p.T")));
        }
    }

    private List<String> breaks(String before, String after) throws Exception {
        ApiComparison comparison = ApiComparison.of(signatures(before), signatures(after));
        return comparison.breaks();
    }

    private List<String> additions(String before, String after) throws Exception {
        ApiComparison comparison = ApiComparison.of(signatures(before), signatures(after));
        assertThat(comparison.breaks()).isEmpty();
        return comparison.additions();
    }

    @Test
    void theSameApiDoesNotDiffer() throws Exception {
        String same = "public interface T<X extends List<X>> { <E extends Exception> Map<String, ? super X>[] f(X... x)"
                + " throws E; int A = 1; enum K { A, B } record R(int a) {} }";
        assertThat(additions(same, same)).isEmpty();
    }

    @Test
    void aMethodThatIsGoneIsABreak() throws Exception {
        assertThat(breaks("public class T { public void f() {} }", "public class T {}"))
                .containsExactly("method p.T.f() void is gone");
        assertThat(breaks("public class T { public void f(int a) {} }", "public class T { public void f(long a) {} }"))
                .containsExactly("method p.T.f(int) void is gone");
    }

    @Test
    void aMethodThatIsLessVisibleIsABreak() throws Exception {
        assertThat(breaks("public class T { public void f() {} }", "public class T { void f() {} }"))
                .containsExactly("method p.T.f() void is gone");
        assertThat(breaks("public class T { public void f() {} }", "public class T { protected void f() {} }"))
                .containsExactly("method p.T.f() void became protected, is no longer public");
        assertThat(additions("public class T { protected void f() {} }", "public class T { public void f() {} }"))
                .containsExactly("method p.T.f() void changed");
    }

    @Test
    void anotherReturnTypeIsABreak() throws Exception {
        assertThat(breaks("public interface T { int f(); }", "public interface T { long f(); }"))
                .contains("method p.T.f() int is gone");
        assertThat(breaks(
                        "public class T { public List<Long> f() { return null; } }",
                        "public class T { public List<String> f() { return null; } }"))
                .containsExactly("method p.T.f() java.util.List<java.lang.Long> is gone");
    }

    @Test
    void aNewAbstractMethodIsABreakWhereOthersImplementTheType() throws Exception {
        assertThat(breaks("public interface T { void f(); }", "public interface T { void f(); void g(); }"))
                .containsExactly("method p.T.g() void is a new abstract method");
        assertThat(breaks(
                        "public abstract class T { public T() {} }",
                        "public abstract class T { public T() {} public abstract void g(); }"))
                .containsExactly("method p.T.g() void is a new abstract method");
        assertThat(breaks("public interface T { default void f() {} }", "public interface T { void f(); }"))
                .containsExactly("method p.T.f() void became abstract");
    }

    @Test
    void aNewAbstractMethodIsAnAdditionWhereNothingElseImplementsTheType() throws Exception {
        assertThat(additions(
                        "public abstract class T { T() {} }",
                        "public abstract class T { T() {} public abstract void g(); }"))
                .containsExactly("method p.T.g() void is new");
        assertThat(additions("public class T {}", "public class T { public interface I { void f(); } }"))
                .contains("method p.T$I.f() void is new");
    }

    @Test
    void newMethodsWithABodyAreAdditions() throws Exception {
        assertThat(additions(
                        "public interface T { void f(); }", "public interface T { void f(); default void g() {} }"))
                .containsExactly("method p.T.g() void is new");
        assertThat(additions("public interface T { void f(); }", "public interface T { default void f() {} }"))
                .containsExactly("method p.T.f() void changed");
    }

    @Test
    void restrictionsOfATypeAreBreaks() throws Exception {
        assertThat(breaks("public class T {}", "public final class T {}")).contains("type p.T became final");
        assertThat(breaks("public class T {}", "public abstract class T {}")).contains("type p.T became abstract");
        assertThat(breaks(
                        "public class T implements Runnable { public void run() {} }",
                        "public class T { public void run() {} }"))
                .containsExactly("type p.T is no longer implements:java.lang.Runnable");
        assertThat(breaks("public class T {}", "public interface T {}")).isNotEmpty();
        assertThat(additions("public final class T {}", "public class T implements Runnable { public void run() {} }"))
                .containsExactly("type p.T changed", "method p.T.run() void is new");
    }

    @Test
    void aRecordWithAnotherComponentIsABreak() throws Exception {
        assertThat(breaks("public record T(int a) {}", "public record T(int a, int b) {}"))
                .containsExactly("constructor p.T(int) is gone");
        assertThat(additions(
                        "public record T(int a) {}",
                        "public record T(int a, int b) { public T(int a) { this(a, 0); } }"))
                .containsExactlyInAnyOrder("constructor p.T(int,int) is new", "method p.T.b() int is new");
    }

    @Test
    void checkedExceptionsAndStaticMethodsAreCompared() throws Exception {
        assertThat(breaks("public interface T { void f(); }", "public interface T { void f() throws Exception; }"))
                .containsExactly("method p.T.f() void became throws:java.lang.Exception");
        assertThat(breaks("public class T { public static void f() {} }", "public class T { public void f() {} }"))
                .containsExactly("method p.T.f() void is no longer static");
    }

    @Test
    void constantsAreInlinedSoTheirValuesAreCompared() throws Exception {
        assertThat(breaks(
                        "public class T { public static final int A = 1; }",
                        "public class T { public static final int A = 2; }"))
                .containsExactly("field p.T.A int = 1 is gone");
        assertThat(breaks("public enum T { A, B }", "public enum T { A }")).containsExactly("field p.T.B p.T is gone");
    }

    @Test
    void nullnessIsCompared() throws Exception {
        assertThat(breaks(
                        "public interface T { void f(@Nullable String s); }",
                        "public interface T { void f(String s); }"))
                .contains("method p.T.f(@Nullable java.lang.String) void is gone");
    }

    @Test
    void whatIsExperimentalMayChange() throws Exception {
        String mark = "@io.nereid.base.Experimental ";
        assertThat(additions("public class T { " + mark + "public void f() {} }", "public class T {}"))
                .containsExactly("method p.T.f() void is gone");
        assertThat(additions(
                        mark + "public interface T { void f(); }", mark + "public interface T { void f(); void g(); }"))
                .containsExactly("method p.T.g() void is new");
        assertThat(breaks("public class T { public void f() {} }", "public class T { " + mark + "public void f() {} }"))
                .containsExactly("method p.T.f() void became experimental");
    }
}
