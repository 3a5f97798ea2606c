// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
// All models in a table that draws the rows in view only, so that thousands stay fluid.

import {html, nothing} from '../../lib/lit-html/lit-html.js';
import {repeat} from '../../lib/lit-html/directives/repeat.js';
import {changed, store, totals} from '../store.js';
import {ago, bytes, micros, number, rate} from '../format.js';
import {modelState, notice} from '../ui.js';
import {actions, load, obstacle, unload} from '../manage.js';

/** The height of a row in pixels, as it was drawn. */
let rowHeight = 43;
let search = '';
let state = '';
let sort = {by: 'name', down: false};
let top = 0;
let height = 900;

export const title = () => 'Models';

export function enter(parameters) {
  state = parameters.state ?? '';
  top = 0;
}

const KEYS = {
  name: m => m.model.name, rate: m => m.rate, p50: m => m.p50, p99: m => m.p99, errors: m => m.failureRate, queue: m => m.queued, memory: m => m.memory, last: m => m.lastMs
};

function chosen() {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const list = [];
  for (const model of store.models.values()) {
    const text = `${model.name} ${model.versions.map(v => v.backend).join(' ')}`.toLowerCase();
    if (words.every(w => text.includes(w)) && inState(model)) {
      list.push({model, ...totals(model)});
    }
  }
  const key = KEYS[sort.by];
  list.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : a.model.name < b.model.name ? -1 : 1) * (sort.down ? -1 : 1));
  return list;
}

function inState(model) {
  const has = s => model.versions.some(v => v.state === s);
  return state === '' || state === 'serving' && has('AVAILABLE') || state === 'failed' && has('FAILED')
    || state === 'not loaded' && !model.versions.some(v => !['GONE', 'FAILED'].includes(v.state));
}

const header = (by, text, optional = '') => html`<th class="${by === 'name' ? '' : 'number'} ${optional}" aria-sort=${sort.by !== by ? nothing : sort.down ? 'descending' : 'ascending'}>
  <button type="button" @click=${() => { sort = {by, down: sort.by === by ? !sort.down : by !== 'name'}; changed(); }}>${text}${sort.by === by ? sort.down ? ' ▾' : ' ▴' : ''}</button></th>`;

function row({model, ...t}) {
  const action = actions.get(model.name);
  const loaded = model.versions.some(v => !['GONE', 'FAILED'].includes(v.state));
  const closed = obstacle();
  return html`<tr><td title=${model.name}><a href="#/model/${encodeURIComponent(model.name)}">${model.name}</a></td>
    <td>${action?.busy ? html`<span class="state warn">${action.text}</span>` : modelState(model)}</td>
    <td class="optional">${model.versions.filter(v => v.state !== 'GONE').map(v => v.version).join(', ') || '–'}</td>
    <td class="optional">${model.versions[0]?.backend || '–'}</td>
    <td class="number">${rate(t.rate)}</td><td class="number optional">${micros(t.p50)}</td><td class="number optional">${micros(t.p99)}</td>
    <td class="number optional">${rate(t.failureRate)}</td><td class="number optional">${number(t.queued)}</td><td class="number optional">${t.memory ? bytes(t.memory) : '–'}</td>
    <td class="number optional">${ago(t.lastMs, store.time)}</td>
    <td>${closed ? nothing : html`<button type="button" ?disabled=${action?.busy} aria-label="${loaded ? 'Reload' : 'Load'} ${model.name}" @click=${() => load(model)}>${loaded ? 'Reload' : 'Load'}</button>
      ${loaded ? html`<button type="button" class="danger" ?disabled=${action?.busy} aria-label="Unload ${model.name}" @click=${() => unload(model)}>Unload</button>` : nothing}`}</td></tr>`;
}

export function view() {
  const list = chosen();
  const first = Math.max(0, Math.min(Math.floor(top / rowHeight) - 5, list.length - 1));
  const last = Math.min(list.length, first + Math.ceil(height / rowHeight) + 12);
  const closed = obstacle();
  const results = [...actions].filter(([, a]) => !a.busy && a.kind === 'bad');
  return html`<h1>Models</h1>
    ${closed && store.models.size ? notice('', closed) : nothing}
    ${results.map(([name, a]) => html`<div class="notice bad" role="alert"><strong>${name}</strong>: ${a.text}
      <button type="button" @click=${() => { actions.delete(name); changed(); }}>Dismiss</button></div>`)}
    <section class="panel">
      <div class="row"><label class="inline">Search <input type="search" id="model-search" .value=${search} @input=${e => { search = e.target.value; top = 0; changed(); }}></label>
        <label class="inline">State <select .value=${state} @change=${e => { state = e.target.value; changed(); }}>
          ${['', 'serving', 'failed', 'not loaded'].map(s => html`<option value=${s} ?selected=${s === state}>${s || 'all'}</option>`)}</select></label>
        <span class="soft" role="status">${list.length === store.models.size ? `${list.length} models` : `${list.length} of ${store.models.size} models`}</span></div>
      <div class="models" tabindex="0" role="region" aria-label="Models" @scroll=${e => {
        top = e.target.scrollTop;
        height = e.target.clientHeight;
        rowHeight = e.target.querySelector('tbody tr:not(.spacer)')?.getBoundingClientRect().height || rowHeight;
        changed();
      }}>
        <table aria-rowcount=${list.length + 1}><thead><tr>${header('name', 'Model')}<th>State</th><th class="optional">Versions</th><th class="optional">Backend</th>
          ${header('rate', 'Requests')}${header('p50', 'p50', 'optional')}${header('p99', 'p99', 'optional')}${header('errors', 'Errors', 'optional')}
          ${header('queue', 'Queue', 'optional')}${header('memory', 'Memory', 'optional')}${header('last', 'Last request', 'optional')}<th>Actions</th></tr></thead>
          <tbody>
            <tr class="spacer" aria-hidden="true"><td colspan="12" .style=${`height: ${first * rowHeight}px`}></td></tr>
            ${repeat(list.slice(first, last), m => m.model.name, row)}
            <tr class="spacer" aria-hidden="true"><td colspan="12" .style=${`height: ${(list.length - last) * rowHeight}px`}></td></tr>
          </tbody></table></div>
      ${store.models.size === 0 ? html`<p class="soft">There are no models. A model is a directory with numbered version directories, or a file such as
        <code>iris.onnx</code>, in the folder that <code>nereid serve FOLDER</code> names.</p>` : nothing}
    </section>`;
}
