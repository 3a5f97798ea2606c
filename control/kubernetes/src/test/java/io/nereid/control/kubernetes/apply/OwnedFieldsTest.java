// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.apply;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.junit.jupiter.api.Test;

/** The fields of a manager, as the API server lists them. */
class OwnedFieldsTest {
    private static final String FIELDS =
            "{'f:metadata':{'f:labels':{'f:app':{}},'f:finalizers':{'.':{},'v:`mine`':{}}},'f:spec':{'f:args':{},"
                    + "'f:containers':{'k:{`name`:`main`}':{'.':{},'f:name':{},'f:image':{},'f:ports':{"
                    + "'k:{`containerPort`:8080,`protocol`:`TCP`}':{'.':{},'f:containerPort':{}}}}}}}";
    private static final String OBJECT =
            "{'kind':'Thing','apiVersion':'v1','metadata':{'name':'one','namespace':'default','labels':{'app':'a',"
                    + "'other':'b'},'finalizers':['mine']},'spec':{'args':['x','y'],'replicas':3,'containers':["
                    + "{'name':'sidecar','image':'s'},{'name':'main','image':'m','env':[{'name':'E'}],'ports':["
                    + "{'containerPort':8080,'protocol':'TCP'}]}]}}";

    private static ObjectNode stored() throws Exception {
        ObjectMapper json = new ObjectMapper();
        ObjectNode object = (ObjectNode) json.readTree(OBJECT.replace('\'', '"'));
        object.withObject("/metadata")
                .putArray("managedFields")
                .addObject()
                .put("manager", "me")
                .put("operation", "Apply")
                .set("fieldsV1", json.readTree(FIELDS.replace('\'', '"').replace("`", "\\\"")));
        return object;
    }

    @Test
    void whatAManagerAppliedWouldChangeNothing() throws Exception {
        ObjectNode owned = OwnedFields.of(stored(), "me");
        assertThat(owned).isNotNull();
        assertThat(owned.toString().replace('"', '\''))
                .contains("'labels':{'app':'a'}")
                .contains("'finalizers':['mine']")
                .contains("'args':['x','y']")
                .contains("'containers':[{'name':'main','image':'m','ports':[{'containerPort':8080}]}]")
                .contains("'name':'one','namespace':'default'")
                .doesNotContain("replicas");
        assertThat(ApplyDifference.find(owned, stored(), "me")).isNull();
        assertThat(OwnedFields.of(stored(), "another")).isNull();
    }

    @Test
    void whatOthersHaveSetIsTheRest() throws Exception {
        assertThat(OwnedFields.specWithout(stored(), "me").toString().replace('"', '\''))
                .isEqualTo("{'replicas':3,'containers':[{'name':'sidecar','image':'s'},{'env':[{'name':'E'}],"
                        + "'ports':[{'protocol':'TCP'}]}]}");
        assertThat(OwnedFields.specWithout(stored(), "another")).isEqualTo(stored().path("spec"));
    }
}
