// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.gateway;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.gateway.upstream.RevisionTarget.Replica;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class EndpointReplicasTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    private List<Replica> read(String... slices) throws JsonProcessingException {
        List<ObjectNode> trees = new ArrayList<>();
        for (String slice : slices) {
            trees.add((ObjectNode) JSON.readTree(slice));
        }
        return EndpointReplicas.of(trees, 8080, 0, zone);
    }

    /** The zone of the gateway. */
    private String zone = "";

    @Test
    void onlyReadyEndpointsThatStayTakeRequests() throws Exception {
        assertThat(read("""
                {"addressType": "IPv4", "endpoints": [
                  {"addresses": ["10.0.0.1"]},
                  {"addresses": ["10.0.0.2", "10.0.0.9"], "conditions": {"ready": true, "serving": true}},
                  {"addresses": ["10.0.0.3"], "conditions": {"ready": false}},
                  {"addresses": ["10.0.0.4"], "conditions": {"ready": false, "serving": true, "terminating": true}},
                  {"addresses": ["10.0.0.5"], "conditions": {"ready": true, "terminating": true}}]}""")).containsExactly(new Replica("10.0.0.1", 8080, 0), new Replica("10.0.0.2", 8080, 0));
    }

    @Test
    void namedPortsOfASliceAreThoseOfItsPods() throws Exception {
        assertThat(read("""
                {"addressType": "IPv4", "ports": [{"name": "http", "port": 9000}, {"name": "grpc", "port": 9001}],
                 "endpoints": [{"addresses": ["10.0.0.1"]}]}""")).containsExactly(new Replica("10.0.0.1", 9000, 9001));
    }

    @Test
    void slicesMayHaveNoEndpoints() throws Exception {
        assertThat(read("{\"addressType\": \"IPv4\", \"endpoints\": null}", "{\"addressType\": \"IPv4\"}"))
                .isEmpty();
    }

    @Test
    void aPodWithTwoFamiliesCountsOnce() throws Exception {
        String pod = "\"targetRef\": {\"kind\": \"Pod\", \"name\": \"p\", \"uid\": \"1\"}";
        String six = "{\"addressType\": \"IPv6\", \"endpoints\": [{\"addresses\": [\"fd00::1\"], " + pod + "}]}";
        String four = "{\"addressType\": \"IPv4\", \"endpoints\": [{\"addresses\": [\"10.0.0.1\"], " + pod + "}]}";
        assertThat(read(six, four)).containsExactly(new Replica("10.0.0.1", 8080, 0));
        assertThat(read(six)).containsExactly(new Replica("fd00::1", 8080, 0));
    }

    @Test
    void namesAreNotAddresses() throws Exception {
        assertThat(read("{\"addressType\": \"FQDN\", \"endpoints\": [{\"addresses\": [\"example.com\"]}]}"))
                .isEmpty();
    }

    private static String endpoint(String address, String zone, String hints) {
        return "{\"addresses\": [\"" + address + "\"], \"zone\": \"" + zone + "\"" + hints + "}";
    }

    private List<String> preferred(String... endpoints) throws Exception {
        return read("{\"addressType\": \"IPv4\", \"endpoints\": [" + String.join(",", endpoints) + "]}").stream()
                .filter(Replica::preferred)
                .map(Replica::host)
                .toList();
    }

    @Test
    void podsOfTheOwnZoneArePreferredWhenTheyAreEnough() throws Exception {
        String[] even = {endpoint("10.0.0.1", "a", ""), endpoint("10.0.0.2", "b", ""), endpoint("10.0.0.3", "b", "")};
        assertThat(preferred(even)).as("an unknown zone").hasSize(3);
        zone = "b";
        assertThat(preferred(even)).containsExactly("10.0.0.2", "10.0.0.3");
        zone = "a";
        assertThat(preferred(even))
                .as("one of three pods in two zones is too few")
                .hasSize(3);
        zone = "c";
        assertThat(preferred(even)).as("no pod in the zone").hasSize(3);
    }

    @Test
    void hintsOfKubernetesDecideWhereAllEndpointsHaveThem() throws Exception {
        zone = "a";
        String hint = ", \"hints\": {\"forZones\": [{\"name\": \"a\"}]}";
        String other = ", \"hints\": {\"forZones\": [{\"name\": \"b\"}]}";
        assertThat(preferred(endpoint("10.0.0.1", "b", hint), endpoint("10.0.0.2", "a", other)))
                .containsExactly("10.0.0.1");
        assertThat(preferred(endpoint("10.0.0.1", "b", hint), endpoint("10.0.0.2", "a", "")))
                .as("hints of some only do not count")
                .containsExactly("10.0.0.2");
    }
}
