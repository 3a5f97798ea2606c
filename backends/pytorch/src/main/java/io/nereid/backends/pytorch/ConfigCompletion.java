// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import io.nereid.backends.pytorch.ArgumentBinding.Answer;
import io.nereid.backends.pytorch.ArgumentBinding.Slot;
import io.nereid.backends.pytorch.ArgumentBinding.Style;
import io.nereid.backends.pytorch.TorchScriptSignature.Argument;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Auto-completion: checks a model configuration against the signature of the archive's {@code forward} method, and
 * fills in what the configuration leaves out. TorchScript does not declare shapes, nor the element types of tensors, so
 * these are filled in unchecked. Confined to one load.
 */
final class ConfigCompletion {
    private static final Logger LOG = System.getLogger(ConfigCompletion.class.getName());
    private static final Pattern INDEXED = Pattern.compile(".*__(\\d{1,6})");
    private static final String OUTPUT = "OUTPUT__";

    private final ModelConfig config;
    private final TorchScriptSignature script;
    private final boolean fill;
    private final Style style;

    /**
     * Constructor.
     *
     * @param fill whether tensors and batch size may be filled in; if false, they are only checked
     */
    ConfigCompletion(ModelConfig config, TorchScriptSignature script, boolean fill) {
        this.config = config;
        this.script = script;
        this.fill = fill;
        String only = script.arguments().size() == 1 ? script.arguments().get(0).type() : "";
        style = only.equals("Dict[str,Tensor]")
                ? Style.DICT
                : only.equals("List[Tensor]") ? Style.LIST : Style.ARGUMENTS;
    }

    /**
     * Completes and validates the configuration.
     *
     * @param instances the number of instances if the configuration does not set one
     * @throws ServingException INVALID_ARGUMENT when configuration and model contradict each other
     */
    ModelConfig complete(int instances) {
        if (script.count() == 0
                || script.returns().equals("None")
                || script.returns().equals("NoneType")) {
            throw rejected("its method 'forward' returns nothing", "change it to return a tensor");
        }
        return config.completed(
                PytorchBackend.PLATFORM,
                PytorchBackend.NAME,
                Math.max(0, config.maxBatchSize()),
                config.inputs().isEmpty() && fill ? inputs() : config.inputs(),
                config.outputs().isEmpty() && fill ? outputs() : config.outputs(),
                config.batching(),
                config.instances() > 0 ? config.instances() : instances);
    }

    private List<TensorSpec> inputs() {
        Set<String> others = new HashSet<>();
        config.modelInputs().forEach(spec -> others.add(spec.name()));
        if (style != Style.ARGUMENTS) {
            throw rejected(
                    "its method 'forward' takes a " + (style == Style.DICT ? "dict" : "list")
                            + " of tensors, and the file does not list them",
                    "list the inputs in config.pbtxt, in the order of the list, or under the keys of the dict");
        }
        List<TensorSpec> inputs = new ArrayList<>();
        for (Argument argument : script.arguments()) {
            TorchType value = TorchType.of(argument.type());
            if (others.contains(argument.name()) || value == null) {
                continue;
            }
            DataType type = value.dataType();
            inputs.add(new TensorSpec(
                    argument.name(),
                    type != null ? type : argument.index() ? DataType.INT64 : DataType.FP32,
                    shape(value),
                    argument.optional(),
                    false,
                    null,
                    value == TorchType.TENSOR));
        }
        return List.copyOf(inputs);
    }

    private static Shape shape(TorchType value) {
        return value == TorchType.TENSOR ? Shape.SCALAR : value.single() ? Shape.of(1) : Shape.of(-1);
    }

    private List<TensorSpec> outputs() {
        if (script.count() < 0) {
            throw rejected(
                    "the file does not declare how many values its method 'forward' returns (it returns "
                            + script.returns() + ")",
                    script.returnsDict()
                            ? "list the outputs in config.pbtxt under the keys of the dict"
                            : "list the outputs in config.pbtxt as " + OUTPUT + "0, " + OUTPUT + "1, …");
        }
        List<TensorSpec> outputs = new ArrayList<>();
        for (int i = 0; i < script.count(); i++) {
            TorchType value = answer(i);
            DataType type = value.dataType();
            outputs.add(new TensorSpec(
                    script.names().isEmpty() ? OUTPUT + i : script.names().get(i),
                    type == null ? DataType.FP32 : type,
                    shape(value),
                    false,
                    false,
                    null,
                    value == TorchType.TENSOR));
        }
        return List.copyOf(outputs);
    }

    /** The type of the returned value with this index. */
    private TorchType answer(int index) {
        String type = index < script.types().size()
                ? script.types().get(index)
                : script.returnsDict()
                        ? script.returns()
                                .substring(
                                        script.returns().indexOf(',') + 1,
                                        script.returns().length() - 1)
                        : script.returns().equals("List[Tensor]") ? "Tensor" : script.returns();
        TorchType value = TorchType.of(type);
        if (value == null) {
            throw rejected(
                    "its method 'forward' returns " + script.returns() + ", and " + type + " cannot be a tensor",
                    "change it to return tensors: one, a tuple, a list or a dict of them");
        }
        return value;
    }

    /**
     * Binds the inputs and outputs of a complete configuration to the method's arguments and returned values.
     *
     * @throws ServingException INVALID_ARGUMENT when they do not match
     */
    ArgumentBinding wiring(ModelConfig complete) {
        List<TensorSpec> feeds = complete.modelInputs();
        unique(feeds.stream().map(TensorSpec::name).toList(), "input");
        unique(complete.modelOutputs().stream().map(TensorSpec::name).toList(), "output");
        for (TensorSpec spec : feeds) {
            if (spec.dataType() == DataType.BYTES && style != Style.ARGUMENTS) {
                throw rejected(
                        "input '" + spec.name() + "' is a string tensor, but numbers are expected", "correct its type");
            }
        }
        List<String> names = feeds.stream().map(TensorSpec::name).toList();
        return new ArgumentBinding(
                style,
                style == Style.ARGUMENTS ? slots(feeds, complete.batched()) : List.of(),
                style == Style.LIST ? listed(names) : List.of(),
                answers(complete),
                script.mutates());
    }

    private void unique(List<String> names, String side) {
        Set<String> seen = new HashSet<>();
        for (String name : names) {
            if (!seen.add(name)) {
                throw rejected("its configuration has " + side + " '" + name + "' twice", "remove one of them");
            }
        }
    }

    /**
     * The inputs of a list argument: in the order of the indices in their names if all have one, else as configured.
     */
    private static List<String> listed(List<String> names) {
        String[] ordered = new String[names.size()];
        for (String name : names) {
            int index = index(name);
            if (index < 0 || index >= ordered.length || ordered[index] != null) {
                return names;
            }
            ordered[index] = name;
        }
        return List.of(ordered);
    }

    private static int index(String name) {
        Matcher m = INDEXED.matcher(name);
        return m.matches() ? Integer.parseInt(m.group(1)) : -1;
    }

    private List<Slot> slots(List<TensorSpec> feeds, boolean batched) {
        List<Argument> arguments = script.arguments();
        @Nullable TensorSpec[] fed = assigned(feeds);
        List<Slot> slots = new ArrayList<>();
        for (int i = 0; i < fed.length; i++) {
            Argument argument = arguments.get(i);
            TensorSpec spec = fed[i];
            TorchType value = TorchType.of(argument.type());
            if (spec == null) {
                if (!argument.optional()) {
                    throw rejected(
                            "its argument '" + argument.name() + "' has no input"
                                    + (value == null ? ", and a tensor cannot be " + argument.type() : ""),
                            value == null
                                    ? "give the argument a default, or change its type"
                                    : "add it to the inputs, or leave inputs out of the configuration");
                }
                slots.add(new Slot(
                        argument.name(),
                        null,
                        TorchType.TENSOR,
                        constant(argument),
                        false,
                        argument.otherwise() != null));
                continue;
            }
            if (value == null) {
                throw rejected(
                        "input '" + spec.name() + "' cannot be the argument '" + argument.name() + "' of type "
                                + argument.type(),
                        "leave it out, or change the argument's type");
            }
            check(spec, argument, value, batched);
            if (spec.optional() && !argument.optional()) {
                throw rejected(
                        "input '" + spec.name() + "' is optional in the configuration, but the model needs it",
                        "remove 'optional', or give the argument a default");
            }
            slots.add(new Slot(
                    argument.name(),
                    spec.name(),
                    value,
                    argument.optional() ? constant(argument) : null,
                    !argument.optional(),
                    argument.otherwise() != null));
        }
        return List.copyOf(slots);
    }

    private void check(TensorSpec spec, Argument argument, TorchType value, boolean batched) {
        DataType wanted = value.dataType();
        if (wanted == null ? spec.dataType() == DataType.BYTES : spec.dataType() != wanted) {
            throw rejected(
                    "input '" + spec.name() + "' is of type " + spec.dataType() + ", but the argument '"
                            + argument.name() + "' is " + argument.type(),
                    "set its type to " + (wanted == null ? "that of the tensor" : wanted));
        }
        if (batched && value.single()) {
            throw rejected(
                    "the argument '" + argument.name() + "' is a single " + argument.type()
                            + ", which requests of one batch cannot share",
                    "set max_batch_size: 0, or leave the input out where the argument has a default");
        }
    }

    /**
     * Assigns an input to each argument: by name, else by the index in the input's name ({@code INPUT__0}), else by the
     * order in the configuration. The order is used only if no input has an argument's name.
     */
    private @Nullable TensorSpec[] assigned(List<TensorSpec> feeds) {
        List<String> names = script.arguments().stream().map(Argument::name).toList();
        if (feeds.size() > names.size()) {
            throw rejected(
                    "its configuration has " + feeds.size() + " inputs, its method 'forward' has " + names.size()
                            + " arguments (" + String.join(", ", names) + ")",
                    "remove the others, or leave inputs out of the configuration");
        }
        @Nullable TensorSpec[] fed = new TensorSpec[names.size()];
        for (TensorSpec spec : feeds) {
            int at = names.indexOf(spec.name());
            at = at < 0 ? index(spec.name()) : at;
            if (at < 0 || at >= fed.length || fed[at] != null) {
                if (at >= fed.length) {
                    throw rejected(
                            "input '" + spec.name() + "' is the argument of index " + at + ", but there are only "
                                    + fed.length,
                            "number the inputs from 0, or name them " + String.join(", ", names));
                }
                return inOrder(feeds, names);
            }
            fed[at] = spec;
        }
        return fed;
    }

    private @Nullable TensorSpec[] inOrder(List<TensorSpec> feeds, List<String> names) {
        for (TensorSpec spec : feeds) {
            if (names.contains(spec.name())) {
                throw rejected(
                        "not all of its inputs are arguments of its method 'forward' (" + String.join(", ", names)
                                + ")",
                        NameSuggestions.didYouMean(
                                feeds.stream()
                                        .map(TensorSpec::name)
                                        .filter(n -> !names.contains(n))
                                        .findFirst()
                                        .orElse(""),
                                names,
                                "name all inputs so, or number them all: INPUT__0, INPUT__1, …"));
            }
        }
        LOG.log(
                Level.WARNING,
                "model ''{0}'': its inputs are neither arguments of forward ({1}) nor numbered (INPUT__0, …);"
                        + " they are used in the order of the configuration",
                config.name(),
                String.join(", ", names));
        return Arrays.copyOf(feeds.toArray(new TensorSpec[0]), names.size());
    }

    /** Parses an argument's default value; null for None. */
    private @Nullable Object constant(Argument argument) {
        String text = argument.otherwise();
        if (text == null || text.equals("None")) {
            return null;
        }
        try {
            return switch (text) {
                case "True" -> true;
                case "False" -> false;
                default -> {
                    if (text.startsWith("\"") && text.endsWith("\"") && text.indexOf('\\') < 0) {
                        yield text.substring(1, text.length() - 1);
                    }
                    yield argument.type().contains("float") ? (Object) Double.valueOf(text) : Long.valueOf(text);
                }
            };
        } catch (NumberFormatException e) {
            // An expression that only libtorch can evaluate. It applies when this and all later arguments are left out.
            return Unknown.INSTANCE;
        }
    }

    /** A default value that only libtorch can evaluate. */
    enum Unknown {
        INSTANCE
    }

    private Map<String, Answer> answers(ModelConfig complete) {
        List<TensorSpec> fetches = complete.modelOutputs();
        if (fetches.isEmpty()) {
            throw rejected("its configuration has no outputs", "add them, or let the server complete configurations");
        }
        Map<String, Answer> answers = new LinkedHashMap<>();
        boolean numbered = fetches.stream().allMatch(f -> index(f.name()) >= 0);
        for (int i = 0; i < fetches.size(); i++) {
            TensorSpec spec = fetches.get(i);
            String name = spec.name();
            int at = script.names().indexOf(name);
            if (script.returnsDict()) {
                if (at < 0 && !script.names().isEmpty()) {
                    throw unknown(name);
                }
                answers.put(name, new Answer(name, -1));
                continue;
            }
            int index = at >= 0 ? at : numbered ? index(name) : script.names().isEmpty() ? i : -1;
            if (index < 0) {
                throw unknown(name);
            }
            if (script.count() >= 0 && index >= script.count()) {
                throw rejected(
                        "output '" + name + "' is the value of index " + index + ", but its method 'forward' returns "
                                + script.count() + " (" + script.returns() + ")",
                        "number the outputs from 0: OUTPUT__0");
            }
            if (script.count() >= 0) {
                DataType type = answer(index).dataType();
                if (type == null ? spec.dataType() == DataType.BYTES : spec.dataType() != type) {
                    throw rejected(
                            "output '" + name + "' is of type " + spec.dataType() + ", but the model returns "
                                    + answer(index).name(),
                            "set its type to " + (type == null ? "that of the tensor" : type));
                }
            }
            answers.put(name, new Answer(null, script.returnsMany() ? index : -1));
        }
        return Map.copyOf(answers);
    }

    private ServingException unknown(String name) {
        return rejected(
                "its configuration has output '" + name + "', which the model does not return (it returns "
                        + String.join(", ", script.names()) + ")",
                NameSuggestions.didYouMean(name, script.names(), "correct the name, or leave outputs out"));
    }

    private ServingException rejected(String what, String remedy) {
        return ServingException.invalidArgument("unable to load model '" + config.name() + "': " + what, remedy);
    }
}
