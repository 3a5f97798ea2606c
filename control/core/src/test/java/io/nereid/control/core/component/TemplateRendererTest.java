// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.component;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TemplateRendererTest {
    private static final TemplateRenderer TEMPLATES = new TemplateRenderer(
            Map.of("Name", "iris", "Namespace", "team-a"),
            Map.of(
                    "Labels",
                            Map.of("modelClass", "a.B", "x/y", "slashed", "evil", "\",\"command\":[\"sh\"]}{{.Name}}"),
                    "Annotations", Map.of("modelFormat", "sklearn")));

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '^',
            value = {
                "plain|plain",
                "{{.Name}}|iris",
                "{{ .Name }}|iris",
                "{{.Namespace}}/{{.Name}}|team-a/iris",
                "--model_name={{.Name}}|--model_name=iris",
                "{{.Labels.modelClass}}|a.B",
                "{{ .Annotations.modelFormat }}!|sklearn!",
                "{{ index .Labels \"x/y\" }}|slashed",
                "{{ index .Labels `x/y` }}|slashed",
                "a  {{- .Name -}}  b|airisb",
                "{{.Labels.evil}}|\",\"command\":[\"sh\"]}{{.Name}}",
                "}} {|}} {"
            })
    void textsAreRendered(String template, String expected) {
        assertThat(TEMPLATES.fill(template, "args")).isEqualTo(expected);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '^',
            value = {
                "{{.Labels.absent}}|the service has no label \"absent\"",
                "{{.Annotations.absent}}|the service has no annotation \"absent\"",
                "{{ index .Labels \"a b\" }}|the service has no label \"a b\"",
                "{{.UID}}|is not a template field",
                "{{.name}}|is not a template field",
                "{{.ObjectMeta.Name}}|is not a template field",
                "{{.Name.x}}|is not a template field",
                "{{.Labels}}|is not a template field",
                "{{ printf \"%s\" .Name }}|is not a template field",
                "{{ if .Name }}x{{ end }}|is not a template field",
                "{{}}|is not a template field",
                "{{.Name|without",
                "a {{ b|without"
            })
    void unknownFieldsAreRejected(String template, String message) {
        assertThatThrownBy(() -> TEMPLATES.fill(template, "args[0]"))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("args[0]")
                .hasMessageContaining(message);
    }

    @Test
    void valuesCannotLeaveTheirString() throws IOException {
        ObjectMapper json = new ObjectMapper();
        var filled = TEMPLATES.fill(
                json.readTree("{\"args\":[\"{{.Labels.evil}}\",\"{{.Name}}\"],\"n\":1,\"{{.Name}}\":true}"), "c");
        assertThat(filled.path("args").size()).isEqualTo(2);
        assertThat(filled.path("args").get(0).asText()).isEqualTo("\",\"command\":[\"sh\"]}{{.Name}}");
        assertThat(filled.has("command")).isFalse();
        assertThat(filled.path("n").asInt()).isEqualTo(1);
        assertThat(filled.has("{{.Name}}")).isTrue();
    }
}
