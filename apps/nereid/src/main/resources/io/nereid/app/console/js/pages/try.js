// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
// A form made from the model's metadata, the answer, and the same call for other clients.

import {html, nothing} from '../../lib/lit-html/lit-html.js';
import {basePath, get, send, url} from '../api.js';
import {changed, may, store} from '../store.js';
import {micros, value} from '../format.js';
import {bars, copyButton, notice} from '../ui.js';
import {curl, elements, example, imageTensor, java, nested, parse, parseCsv, python} from '../tensors.js';

let metadata = null;
let inputs = [];
let recorded = [];
let error = '';
let answer = null;
let busy = false;
let version = '';
let language = 'curl';
let generation = 0;

export const title = p => p.name ? `Try ${p.name}` : 'Try it';

export async function enter(p) {
  metadata = null;
  inputs = [];
  recorded = [];
  error = '';
  answer = null;
  version = p.version ?? '';
  const mine = ++generation;
  if (!p.name) {
    return;
  }
  try {
    const found = await get(path(p.name));
    if (mine !== generation) {
      return;
    }
    metadata = found;
    inputs = found.inputs.map(input => {
      const dims = input.shape.map(d => d < 0 ? 1 : d);
      return {...input, dims, text: elements(dims) > 100000 ? '' : JSON.stringify(example(input.datatype, dims)), scale: 'unit', file: ''};
    });
    // What clients have sent is for those who may read the log.
    if (may('configure-observe') && may('infer')) {
      const requests = (await get(`console/api/models/${encodeURIComponent(p.name)}/recorded`)).examples;
      if (mine === generation) {
        recorded = requests;
      }
    }
  } catch (e) {
    error = e.message;
  }
  changed();
}

const path = name => `v2/models/${encodeURIComponent(name)}${version ? `/versions/${encodeURIComponent(version)}` : ''}`;

/** The request's tensors; throws with a message for the user. */
const request = () => ({inputs: inputs.filter(i => i.text.trim() !== '').map(i => parse(i, i.text, i.dims))});

async function submit(event, name) {
  event.preventDefault();
  error = '';
  let body;
  try {
    body = request();
  } catch (e) {
    error = e.message;
    changed();
    return;
  }
  busy = true;
  changed();
  const begun = performance.now();
  try {
    const {json, headers} = await send('POST', `${path(name)}/infer`, {...body, id: `console-${Date.now().toString(36)}`}, {'nereid-timing': 'true'});
    answer = {json, took: (performance.now() - begun) * 1000, timing: headers.get('server-timing')};
  } catch (e) {
    error = e.message;
    answer = null;
  }
  busy = false;
  changed();
}

/** Takes a file: an image, CSV, JSON or text, by the input and the file's type. */
async function take(input, file) {
  error = '';
  try {
    if (file.type.startsWith('image/')) {
      input.file = file;
      const tensor = await imageTensor(file, input.shape, input.datatype, input.scale);
      input.dims = tensor.shape;
      input.text = JSON.stringify(tensor.data);
    } else if (/\.csv$|\.tsv$/i.test(file.name)) {
      const rows = parseCsv(await file.text());
      input.dims = fit(input, rows);
      input.text = JSON.stringify(rows.flat());
    } else if (/\.json$/i.test(file.name)) {
      json(input, JSON.parse(await file.text()));
    } else {
      const text = await file.text();
      if (input.datatype !== 'BYTES') {
        throw new Error(`'${file.name}' is not an image, CSV or JSON, and the input '${input.name}' is not text.`);
      }
      input.dims = input.shape.map(d => d < 0 ? 1 : d);
      input.text = JSON.stringify([text]);
    }
  } catch (e) {
    error = `The file '${file.name}' cannot be used: ${e.message}`;
  }
  changed();
}

function fit(input, rows) {
  if (input.shape.length === 1) {
    return [rows.flat().length];
  }
  return input.shape.map((d, i) => i === 0 ? rows.length : i === 1 ? rows[0].length : Math.max(1, d));
}

/** A whole request, a tensor of one, or values. */
function json(input, document) {
  if (Array.isArray(document.inputs)) {
    for (const tensor of document.inputs) {
      const own = inputs.find(i => i.name === tensor.name);
      if (own) {
        own.dims = tensor.shape;
        own.text = JSON.stringify(tensor.data);
      }
    }
  } else {
    const values = document.instances ?? document.data ?? document;
    input.text = JSON.stringify(values);
    if (document.shape) {
      input.dims = document.shape;
    } else if (Array.isArray(values) && Array.isArray(values[0])) {
      input.dims = fit(input, values);
    }
  }
}

function fill(input, how) {
  const n = elements(input.dims);
  const integer = /INT/.test(input.datatype);
  const random = () => input.datatype === 'BYTES' ? Math.random().toString(36).slice(2, 8) : input.datatype === 'BOOL' ? Math.random() < 0.5 : integer ? Math.floor(Math.random() * 10) : Number((Math.random() * 2 - 1).toFixed(4));
  input.text = JSON.stringify(how === 'random' ? nested(Array.from({length: n}, random), input.dims) : example(input.datatype, input.dims));
  changed();
}

function field(input, i) {
  const id = `input-${i}`;
  return html`<fieldset><legend>${input.name} <span class="soft">${input.datatype} [${input.shape.join(', ')}]</span></legend>
    ${input.shape.some(d => d < 0) ? html`<div class="row field">${input.shape.map((d, at) => d >= 0 ? nothing : html`<label class="inline">dimension ${at + 1}
      <input type="number" min="0" max="1000000" .value=${String(input.dims[at])} @change=${e => { input.dims = input.dims.map((n, j) => j === at ? Math.max(0, Number(e.target.value)) : n); fill(input, 'ones'); }}></label>`)}</div>` : nothing}
    <div class="field"><label for=${id}>Values</label><textarea id=${id} class="code" spellcheck="false" .value=${input.text} @input=${e => { input.text = e.target.value; changed(); }}></textarea></div>
    <div class="row field"><button type="button" @click=${() => fill(input, 'ones')}>Ones</button><button type="button" @click=${() => fill(input, 'random')}>Random</button>
      <label class="inline">File <input type="file" accept="image/*,.csv,.tsv,.json,.txt,text/plain" @change=${e => e.target.files[0] && take(input, e.target.files[0])}></label>
      ${input.file ? html`<label class="inline">Pixels as <select @change=${e => { input.scale = e.target.value; take(input, input.file); }}>
        ${[['unit', '0 to 1'], ['signed', '-1 to 1'], ['imagenet', 'ImageNet mean and deviation'], ['none', '0 to 255']].map(([v, t]) => html`<option value=${v} ?selected=${v === input.scale}>${t}</option>`)}</select></label>` : nothing}</div></fieldset>`;
}

function output(tensor) {
  const data = tensor.data ?? [];
  const flat = data.flat(Infinity);
  const numbers = flat.length > 1 && flat.length <= 2000 && flat.every(v => typeof v === 'number');
  const lastDim = tensor.shape[tensor.shape.length - 1] ?? 1;
  const oneRow = numbers && elements(tensor.shape) === lastDim && lastDim > 1;
  const text = JSON.stringify(nested(flat, tensor.shape), (k, v) => typeof v === 'number' ? Number(value(v)) : v);
  return html`<h3>${tensor.name} <span class="soft">${tensor.datatype} [${tensor.shape.join(', ')}]</span></h3>
    ${oneRow ? bars(flat.map((v, i) => ({label: `${i}`, value: v, text: value(v)})).sort((a, b) => b.value - a.value).slice(0, 10), `The largest values of ${tensor.name}`) : nothing}
    <pre tabindex="0" data-output=${tensor.name}>${text.length > 20000 ? text.slice(0, 20000) + ' …' : text}</pre>`;
}

function calls(name) {
  let body;
  try {
    body = request();
  } catch {
    return html`<p class="soft">The call is shown when the inputs are complete.</p>`;
  }
  const whole = {inputs: body.inputs.map(t => ({...t, data: nested(t.data, t.shape)}))};
  const address = url(`${path(name)}/infer`).href;
  const server = url('').href.replace(/\/$/, '');
  const text = {curl: () => curl(address, whole), Python: () => python(location.host + basePath().replace(/\/$/, ''), location.protocol === 'https:', name, body.inputs), Java: () => java(server, name, body.inputs)}[language]();
  return html`<div class="tabs" role="tablist" aria-label="Language">${['curl', 'Python', 'Java'].map(l => html`<button type="button" role="tab" aria-selected=${l === language} @click=${() => { language = l; changed(); }}>${l}</button>`)}
    ${copyButton(() => text)}</div><pre tabindex="0" id="call">${text}</pre>
    ${store.session.csrfToken ? html`<p class="soft small">Other clients send their key in the header <code>authorization: Bearer …</code>.</p>` : nothing}`;
}

export function view(p) {
  const names = [...store.models.values()].filter(m => m.versions.some(v => v.state === 'AVAILABLE')).map(m => m.name).sort();
  const serving = store.models.get(p.name)?.versions.filter(v => v.state === 'AVAILABLE').map(v => v.version) ?? [];
  return html`<h1>Try ${p.name || 'a model'}</h1>
    <div class="panel row"><label class="inline">Model <select id="try-model" @change=${e => { location.hash = `#/try/${encodeURIComponent(e.target.value)}`; }}>
        ${p.name ? nothing : html`<option value="">choose …</option>`}${names.map(n => html`<option value=${n} ?selected=${n === p.name}>${n}</option>`)}</select></label>
      ${serving.length > 1 ? html`<label class="inline">Version <select @change=${e => { const v = e.target.value; enter({...p, version: v}); }}><option value="">the highest</option>
        ${serving.map(v => html`<option ?selected=${v === version}>${v}</option>`)}</select></label>` : nothing}
      ${p.name ? html`<a href="#/model/${encodeURIComponent(p.name)}">Its page</a>` : nothing}</div>
    ${notice('bad', error)}
    ${!metadata ? p.name || names.length ? nothing : html`<p class="notice">There is not a model that serves. <a href="#/models">Load one</a>.</p>` : html`<div class="columns">
      <form class="panel" @submit=${e => submit(e, p.name)}><h2>Inputs</h2>
        ${recorded.length ? html`<div class="field"><label for="recorded">A recorded request</label><select id="recorded" @change=${e => { if (e.target.value !== '') { json(null, recorded[Number(e.target.value)]); changed(); } }}>
          <option value="">choose …</option>${recorded.map((r, i) => html`<option value=${i}>${i === 0 ? 'the last one' : `${i + 1} from the last`}: ${r.inputs.map(t => `${t.name} [${t.shape.join(', ')}]`).join(', ')}</option>`)}</select></div>` : nothing}
        ${inputs.map(field)}
        <button class="primary" id="predict" ?disabled=${busy}>${busy ? 'Waiting …' : 'Predict'}</button></form>
      <section class="panel" aria-live="polite"><h2>Outputs</h2>${answer ? html`<p class="soft">Version ${answer.json.model_version}, ${micros(answer.took)} as seen by the browser${timing(answer.timing)}</p>
        ${answer.json.outputs.map(output)}` : html`<p class="soft">The answer is shown here.</p>`}</section></div>
      <section class="panel"><h2>The same call elsewhere</h2>${calls(p.name)}</section>`}`;
}

/** The server's own times of the request, from the header server-timing. */
function timing(header) {
  if (!header) {
    return nothing;
  }
  const parts = header.split(',').map(part => [part.trim().split(';')[0], /dur=([\d.]+)/.exec(part)?.[1]]).filter(([, d]) => d !== undefined);
  return parts.length ? html`; in the server: ${parts.map(([name, d]) => `${name.replace(/_/g, ' ')} ${micros(Number(d) * 1000)}`).join(', ')}` : nothing;
}
