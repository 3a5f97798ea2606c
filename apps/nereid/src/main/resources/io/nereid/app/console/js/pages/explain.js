// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
// How much each feature contributed to a prediction.

import {html, nothing} from '../../lib/lit-html/lit-html.js';
import {send} from '../api.js';
import {changed, store} from '../store.js';
import {value} from '../format.js';
import {bars, notice} from '../ui.js';
import {parseCsv} from '../tensors.js';

let rows = '';
let background = '';
let method = 'shap';
let error = '';
let answer = null;
let busy = false;
let target = 0;

export const title = p => p.name ? `Explain ${p.name}` : 'Explain';

export function enter() {
  error = '';
  answer = null;
}

/** JSON, or lines of numbers. */
function read(text, what) {
  try {
    const given = JSON.parse(text);
    return Array.isArray(given) && !Array.isArray(given[0]) && typeof given[0] !== 'object' ? [given] : given;
  } catch {
    const table = parseCsv(text);
    if (table.length === 0 || table.flat().some(v => v === '')) {
      throw new Error(`${what} are neither JSON such as [[1, 2]] nor lines of numbers.`);
    }
    return table;
  }
}

async function submit(event, name) {
  event.preventDefault();
  error = '';
  try {
    const body = {instances: read(rows, 'The rows'), parameters: {method}};
    if (background.trim()) {
      body.parameters.background = read(background, 'The background rows');
    }
    busy = true;
    changed();
    answer = (await send('POST', `v2/models/${encodeURIComponent(name)}/explain`, body)).json;
    target = 0;
  } catch (e) {
    error = e.message;
    answer = null;
  }
  busy = false;
  changed();
}

const VALUES = ['shap_values', 'coefficients', 'importances', 'importance'];

function explanation(e, i) {
  const values = VALUES.map(k => e[k]).find(Array.isArray);
  if (!values) {
    return html`<section class="panel"><h2>Row ${i + 1}</h2><pre tabindex="0">${JSON.stringify(e, null, 2)}</pre></section>`;
  }
  // For a model with several outputs the values are a list of one entry for each output.
  const several = Array.isArray(values[0]);
  const one = several ? values[Math.min(target, values.length - 1)] : values;
  const at = v => Array.isArray(v) ? v[Math.min(target, v.length - 1)] : v;
  const items = one.map((v, f) => ({label: e.feature_names?.[f] ?? `feature ${f}`, value: v, text: value(v)})).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  return html`<section class="panel"><h2>Row ${i + 1}</h2>
    ${several ? html`<label class="inline">Output <select @change=${ev => { target = Number(ev.target.value); changed(); }}>${values.map((_, t) => html`<option value=${t} ?selected=${t === target}>${t}</option>`)}</select></label>` : nothing}
    <p class="soft">${e.base_value === undefined ? nothing : html`base value ${value(at(e.base_value))} + contributions = ${value(at(e.explained_value))}; `}${e.prediction === undefined ? nothing : html`prediction ${value(at(e.prediction))}`}</p>
    ${bars(items.slice(0, 30), 'Contributions of the features')}${items.length > 30 ? html`<p class="soft small">The ${items.length - 30} smallest are not shown.</p>` : nothing}</section>`;
}

export function view(p) {
  const names = [...store.models.values()].filter(m => m.versions.some(v => v.state === 'AVAILABLE')).map(m => m.name).sort();
  return html`<h1>Explain ${p.name || 'a prediction'}</h1>
    <form class="panel" @submit=${e => submit(e, p.name)}>
      <div class="field"><label for="explain-model">Model of tabular inputs</label><select id="explain-model" @change=${e => { location.hash = `#/explain/${encodeURIComponent(e.target.value)}`; }}>
        ${p.name ? nothing : html`<option value="">choose …</option>`}${names.map(n => html`<option value=${n} ?selected=${n === p.name}>${n}</option>`)}</select></div>
      <div class="field"><label for="explain-rows">Rows to explain: JSON, or lines of numbers</label><textarea id="explain-rows" class="code" required spellcheck="false" placeholder="[[5.1, 3.5, 1.4, 0.2]]" .value=${rows} @input=${e => { rows = e.target.value; }}></textarea></div>
      <div class="field"><label for="explain-method">Method</label><select id="explain-method" @change=${e => { method = e.target.value; }}>${['shap', 'tree_shap', 'kernel_shap', 'lime'].map(m => html`<option ?selected=${m === method}>${m}</option>`)}</select></div>
      <div class="field"><label for="explain-background">Background rows (not needed for trees; some tens of rows that represent the data)</label>
        <textarea id="explain-background" class="code" spellcheck="false" .value=${background} @input=${e => { background = e.target.value; }}></textarea></div>
      <button class="primary" ?disabled=${busy || !p.name}>${busy ? 'Waiting …' : 'Explain'}</button></form>
    ${notice('bad', error)}
    <div aria-live="polite">${answer ? html`<p class="soft">${answer.algorithm ?? answer.method}, version ${answer.model_version}${answer.explains ? `, explains ${answer.explains}` : ''}</p>${answer.explanations.map(explanation)}` : nothing}</div>`;
}
