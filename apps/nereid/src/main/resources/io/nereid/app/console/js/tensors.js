// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
// From what a user gives to tensors of the Open Inference Protocol, and the same request for other clients.

/** How many elements a shape has. */
export const elements = shape => shape.reduce((a, d) => a * d, 1);

const INTEGER = /^U?INT/;

/** Values that a model of this input accepts by type and shape: ones, or a text. */
export function example(datatype, shape) {
  const one = datatype === 'BYTES' ? 'text' : datatype === 'BOOL' ? true : 1;
  return nested(Array(Math.max(0, elements(shape))).fill(one), shape);
}

/** Nests flat values by a shape. */
export function nested(flat, shape) {
  if (shape.length === 0) {
    return flat;
  }
  const step = elements(shape.slice(1));
  return shape.length === 1 ? flat.slice(0, shape[0]) : Array.from({length: shape[0]}, (_, i) => nested(flat.slice(i * step, (i + 1) * step), shape.slice(1)));
}

export const flatten = v => Array.isArray(v) ? v.flatMap(flatten) : [v];

/** The shape of nested lists; throws when they are not regular. */
export function shapeOf(v) {
  if (!Array.isArray(v)) {
    return [];
  }
  const inner = v.map(shapeOf);
  if (inner.some(s => s.join() !== inner[0].join())) {
    throw new Error('the lists inside have different lengths');
  }
  return [v.length, ...(inner[0] ?? [])];
}

/**
 * Reads what a user has typed.
 *
 * @param input {name, datatype, shape} of the model; -1 is a dimension of any size
 * @param text JSON, or for BYTES any text
 * @param shape the dimensions, with numbers for those of any size
 */
export function parse(input, text, shape) {
  let values;
  try {
    values = JSON.parse(text);
  } catch (e) {
    if (input.datatype !== 'BYTES') {
      throw new Error(`Input '${input.name}' is not JSON: ${e.message}. Write numbers such as [1, 2.5].`);
    }
    values = text.split('\n');
  }
  let dims = shape;
  if (Array.isArray(values) && Array.isArray(values[0])) {
    dims = shapeOf(values);
    if (dims.length !== input.shape.length || input.shape.some((d, i) => d >= 0 && d !== dims[i])) {
      throw new Error(`Input '${input.name}' has the shape [${dims}], and the model expects [${input.shape}].`);
    }
  }
  const data = flatten(values);
  if (data.length !== elements(dims)) {
    throw new Error(`Input '${input.name}' has ${data.length} values, and the shape [${dims}] needs ${elements(dims)}.`);
  }
  const wrong = data.find(v => input.datatype === 'BYTES' ? typeof v === 'object' : input.datatype === 'BOOL' ? typeof v !== 'boolean'
    : typeof v !== 'number' || INTEGER.test(input.datatype) && !Number.isInteger(v));
  if (wrong !== undefined) {
    throw new Error(`Input '${input.name}' has the value ${JSON.stringify(wrong)}, which is not ${input.datatype}.`);
  }
  return {name: input.name, datatype: input.datatype, shape: dims, data: input.datatype === 'BYTES' ? data.map(String) : data};
}

/** Reads lines of numbers separated by commas; a first line of names is passed over. */
export function parseCsv(text) {
  const rows = text.trim().split(/\r?\n/).map(l => l.split(/[,;\t]/).map(c => c.trim()));
  const numeric = row => row.every(c => c !== '' && !Number.isNaN(Number(c)));
  return (numeric(rows[0]) ? rows : rows.slice(1)).map(row => row.map(c => numeric([c]) ? Number(c) : c));
}

/**
 * The pixels of an image as a tensor of a shape.
 *
 * @param shape with 3 or 1 channels first or last, with or without a batch dimension; -1 is the image's own size
 * @param scale 'unit' for 0 to 1, 'signed' for -1 to 1, 'imagenet' for ImageNet's mean and deviation, 'none' for 0 to 255
 */
export async function imageTensor(file, shape, datatype, scale) {
  const image = await createImageBitmap(file);
  const dims = shape.length === 4 ? shape.slice(1) : shape;
  if (dims.length !== 3) {
    throw new Error(`An image fits a shape with 3 or 4 dimensions, and this input has [${shape}].`);
  }
  const first = dims[0] === 3 || dims[0] === 1;
  const channels = first ? dims[0] : dims[2] === 1 ? 1 : 3;
  const [h, w] = first ? [dims[1], dims[2]] : [dims[0], dims[1]];
  const height = h > 0 ? h : image.height;
  const width = w > 0 ? w : image.width;
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext('2d', {willReadFrequently: true});
  context.drawImage(image, 0, 0, width, height);
  const pixels = context.getImageData(0, 0, width, height).data;
  const mean = [0.485, 0.456, 0.406];
  const deviation = [0.229, 0.224, 0.225];
  const data = new Array(channels * height * width);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const at = (y * width + x) * 4;
      for (let c = 0; c < channels; c++) {
        const raw = channels === 1 ? 0.299 * pixels[at] + 0.587 * pixels[at + 1] + 0.114 * pixels[at + 2] : pixels[at + c];
        const scaled = scale === 'unit' ? raw / 255 : scale === 'signed' ? raw / 127.5 - 1 : scale === 'imagenet' ? (raw / 255 - mean[c]) / deviation[c] : raw;
        data[first ? (c * height + y) * width + x : (y * width + x) * channels + c] = INTEGER.test(datatype) ? Math.round(scaled) : scaled;
      }
    }
  }
  return {data, shape: [...(shape.length === 4 ? [1] : []), ...(first ? [channels, height, width] : [height, width, channels])]};
}

const shell = text => `'${text.replace(/'/g, `'\\''`)}'`;

/** The request as a command of curl. */
export const curl = (address, body) => `curl -s ${address} \\\n  -H 'content-type: application/json' \\\n  -d ${shell(JSON.stringify(body))}`;

const NUMPY = {BOOL: 'bool', UINT8: 'uint8', UINT16: 'uint16', UINT32: 'uint32', UINT64: 'uint64', INT8: 'int8', INT16: 'int16', INT32: 'int32', INT64: 'int64', FP16: 'float16', FP32: 'float32',
  FP64: 'float64', BYTES: 'object', BF16: 'float32'};

/** The request with tritonclient. */
export function python(host, secure, model, inputs) {
  const literal = v => JSON.stringify(v).replace(/\btrue\b/g, 'True').replace(/\bfalse\b/g, 'False');
  return [`import numpy as np`, `import tritonclient.http as http  # pip install tritonclient[http]`, ``, `client = http.InferenceServerClient(${JSON.stringify(host)}${secure ? ', ssl=True' : ''})`, `inputs = []`,
    ...inputs.map(t => [`tensor = np.array(${literal(nested(t.data, t.shape))}, dtype=np.${NUMPY[t.datatype]})`, `inputs.append(http.InferInput(${JSON.stringify(t.name)}, tensor.shape, ${JSON.stringify(t.datatype)}))`,
      `inputs[-1].set_data_from_numpy(tensor)`].join('\n')),
    `result = client.infer(${JSON.stringify(model)}, inputs)`, `for output in result.get_response()["outputs"]:`, `    print(output["name"], result.as_numpy(output["name"]))`].join('\n');
}

const JAVA = {
  FP32: ['float', v => `${v}f`], FP64: ['double', String], INT32: ['int', String], INT64: ['long', v => `${v}L`], BYTES: ['String', JSON.stringify], BOOL: ['boolean', String]
};

/** The request with nereid-client. */
export function java(address, model, inputs) {
  const other = inputs.find(t => !JAVA[t.datatype]);
  if (other) {
    return `// For inputs of the type ${other.datatype} see InferTensor.ofArray and InferTensor.raw of nereid-client.`;
  }
  return [`// Maven: io.nereid:nereid-client`, `try (NereidClient client = NereidClient.builder(${JSON.stringify(address)}).build()) {`, `    InferRequest request = InferRequest.builder(${JSON.stringify(model)})`,
    ...inputs.map(t => `            .input(${JSON.stringify(t.name)}, new ${JAVA[t.datatype][0]}[] {${t.data.map(JAVA[t.datatype][1]).join(', ')}}, ${t.shape.join(', ')})`),
    `            .build();`, `    InferResult result = client.infer(request);`, `}`].join('\n');
}
