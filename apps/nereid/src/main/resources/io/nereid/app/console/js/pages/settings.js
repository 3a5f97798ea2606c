// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
// The options in force and where they come from; log and trace settings, which can be changed while the server runs.

import {html, nothing} from '../../lib/lit-html/lit-html.js';
import {get, send} from '../api.js';
import {changed, may} from '../store.js';
import {notice} from '../ui.js';

let options = [];
let log = null;
let trace = null;
let search = '';
let message = null;

export const title = () => 'Settings';

export async function enter() {
  message = null;
  const parts = await Promise.allSettled([may('configure-observe') ? get('console/api/settings') : [], get('v2/logging'), get('v2/trace/setting')]);
  options = parts[0].value ?? [];
  log = parts[1].value ?? null;
  trace = parts[2].value ?? null;
  changed();
}

async function apply(event, path, values, done) {
  event.preventDefault();
  try {
    const {json} = await send('POST', path, values(event.target.elements));
    done(json);
    message = {kind: 'good', text: 'The settings are in force until the server ends. The options of nereid serve keep them.'};
  } catch (e) {
    message = {kind: 'bad', text: e.message};
  }
  changed();
}

const logForm = () => html`<form class="panel" @submit=${e => apply(e, 'v2/logging', f => ({
    log_info: f.log_info.checked, log_warning: f.log_warning.checked, log_error: f.log_error.checked, log_verbose_level: Number(f.log_verbose_level.value), log_format: f.log_format.value
  }), json => { log = json; })}><h2>Log</h2>
  ${['info', 'warning', 'error'].map(l => html`<label class="inline"><input type="checkbox" name="log_${l}" .checked=${log[`log_${l}`]} ?disabled=${!may('configure-observe')}> ${l}</label> `)}
  <div class="field"><label for="verbose">Verbose level (0 for off, 1 for debug, 2 for everything)</label><input id="verbose" name="log_verbose_level" type="number" min="0" max="9" .value=${String(log.log_verbose_level)} ?disabled=${!may('configure-observe')}></div>
  <div class="field"><label for="format">Format</label><select id="format" name="log_format" ?disabled=${!may('configure-observe')}>${['text', 'json', 'default', 'ISO8601'].map(f => html`<option ?selected=${f === log.log_format}>${f}</option>`)}</select></div>
  ${may('configure-observe') ? html`<button class="primary">Apply</button>` : html`<p class="soft">Changing them needs the permission configure-observe.</p>`}</form>`;

const traceForm = () => html`<form class="panel" @submit=${e => apply(e, 'v2/trace/setting', f => ({
    trace_level: [...f.trace_level.selectedOptions].map(o => o.value), trace_rate: f.trace_rate.value, trace_count: f.trace_count.value
  }), json => { trace = json; })}><h2>Traces</h2>
  <div class="field"><label for="trace-level">Level</label><select id="trace-level" name="trace_level" multiple size="3" ?disabled=${!may('configure-observe')}>${['OFF', 'TIMESTAMPS', 'TENSORS'].map(l => html`<option ?selected=${trace.trace_level?.includes(l)}>${l}</option>`)}</select></div>
  <div class="field"><label for="trace-rate">One of how many requests is traced</label><input id="trace-rate" name="trace_rate" inputmode="numeric" .value=${String(trace.trace_rate ?? '')} ?disabled=${!may('configure-observe')}></div>
  <div class="field"><label for="trace-count">How many traces at most (-1 for no limit)</label><input id="trace-count" name="trace_count" inputmode="numeric" .value=${String(trace.trace_count ?? '')} ?disabled=${!may('configure-observe')}></div>
  ${may('configure-observe') ? html`<button class="primary">Apply</button>` : nothing}</form>`;

export function view() {
  const words = search.toLowerCase();
  const shown = options.filter(o => `${o.option} ${o.value} ${o.from}`.toLowerCase().includes(words));
  return html`<h1>Settings</h1>${message ? notice(message.kind, message.text) : nothing}
    <div class="columns">${log ? logForm() : nothing}${trace ? traceForm() : nothing}</div>
    ${options.length ? html`<section class="panel"><h2>Options in force</h2><div class="row"><label class="inline">Search <input type="search" .value=${search} @input=${e => { search = e.target.value; changed(); }}></label>
      <span class="soft" role="status">${shown.length} of ${options.length}</span></div>
      <div class="scroll" tabindex="0" role="region" aria-label="Options"><table><thead><tr><th>Option</th><th>Value</th><th>From</th></tr></thead><tbody>
        ${[...shown].sort((a, b) => (a.from === 'default') - (b.from === 'default')).map(o => html`<tr><td><code>${o.option}</code></td><td class="wrap">${o.value}</td><td>${o.from === 'default' ? html`<span class="soft">default</span>` : o.from}</td></tr>`)}</tbody></table></div></section>`
      : html`<p class="notice">The options in force are for callers with the permission configure-observe.</p>`}`;
}
