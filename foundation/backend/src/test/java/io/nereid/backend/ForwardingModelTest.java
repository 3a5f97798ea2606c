// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.device.Device;
import io.nereid.spi.config.InstanceGroup;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ForwardingModelTest {
    private static final InstancePlacement ON_GPU = new InstancePlacement(
            "m_0_gpu0", InstanceGroup.cpu("m", 1), new Device(0, "GPU-0", "fake", 8, 0, 1 << 20, null));

    /** Every default method must be overridden, or it would not be forwarded to the wrapped model. */
    @Test
    void everyQuestionReachesTheModelInside() throws ReflectiveOperationException {
        List<String> asked = new ArrayList<>();
        BackendModel inside = (BackendModel) Proxy.newProxyInstance(
                BackendModel.class.getClassLoader(),
                new Class<?>[] {BackendModel.class},
                (proxy, method, arguments) -> {
                    asked.add(method.toGenericString());
                    Class<?> answer = method.getReturnType();
                    return answer == boolean.class ? false : answer == long.class ? 7L : null;
                });
        BackendModel outside = new ForwardingModel(inside);
        List<String> expected = new ArrayList<>();
        for (Method method : BackendModel.class.getMethods()) {
            expected.add(method.toGenericString());
            Object[] arguments = new Object[method.getParameterCount()];
            for (int i = 0; i < arguments.length; i++) {
                Class<?> type = method.getParameterTypes()[i];
                arguments[i] = type == String.class
                        ? "margin"
                        : type == List.class
                                ? List.of()
                                : type == int.class ? (Object) 4 : type == InstancePlacement.class ? ON_GPU : Map.of();
            }
            var unused = method.invoke(outside, arguments);
        }
        assertThat(expected).hasSizeGreaterThan(8);
        assertThat(asked).containsExactlyInAnyOrderElementsOf(expected);
    }
}
