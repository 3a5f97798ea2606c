// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
// The log as it is written.

import {html, nothing} from '../../lib/lit-html/lit-html.js';
import {repeat} from '../../lib/lit-html/directives/repeat.js';
import {follow} from '../api.js';
import {changed, may} from '../store.js';
import {clock} from '../format.js';
import {notice} from '../ui.js';

const MOST = 2000;
const LEVELS = ['DEBUG', 'INFO', 'WARN', 'ERROR'];
let records = [];
let counter = 0;
let level = 'INFO';
let search = '';
let paused = false;
let held = [];
let end = null;
let reason = '';

export const title = () => 'Log';

export function enter() {
  records = [];
  held = [];
  reason = '';
  if (!may('configure-observe')) {
    reason = 'The log is for callers with the permission configure-observe.';
    return;
  }
  end = follow('console/api/log', record => {
    if (record.missed === undefined && counter > 0 && records.some(r => r.time === record.time && r.message === record.message && r.logger === record.logger)) {
      return; // known from before the connection was lost
    }
    (paused ? held : records).push({...record, key: counter++});
    trim();
    changed();
  }, state => {
    reason = state === 'open' ? '' : state;
  });
}

export function leave() {
  end?.();
  end = null;
}

function trim() {
  if (records.length > MOST) {
    records = records.slice(-MOST);
  }
  if (held.length > MOST) {
    held = held.slice(-MOST);
  }
}

function toggle() {
  paused = !paused;
  if (!paused) {
    records.push(...held);
    held = [];
    trim();
  }
  changed();
}

export function view() {
  const words = search.toLowerCase();
  const shown = records.filter(r => r.missed !== undefined || LEVELS.indexOf(r.level) >= LEVELS.indexOf(level)
    && (!words || `${r.logger} ${r.message} ${r.exception ?? ''}`.toLowerCase().includes(words))).slice(-500);
  return html`<h1>Log</h1>${notice('warn', reason)}
    <div class="row panel"><label class="inline">Level <select @change=${e => { level = e.target.value; changed(); }}>${LEVELS.map(l => html`<option ?selected=${l === level}>${l}</option>`)}</select></label>
      <label class="inline">Search <input type="search" .value=${search} @input=${e => { search = e.target.value; changed(); }}></label>
      <button type="button" aria-pressed=${paused} @click=${toggle}>${paused ? `Go on (${held.length} new)` : 'Pause'}</button>
      <button type="button" @click=${() => { records = []; changed(); }}>Clear</button>
      <span class="soft small">The newest record is at the top. <a href="#/settings">Settings</a> change what is logged.</span></div>
    <ul class="log" tabindex="0" aria-label="Log records">${repeat([...shown].reverse(), r => r.key, r => r.missed !== undefined ? html`<li class="WARN">… ${r.missed} records are missing: the connection was too slow</li>`
      : html`<li class=${r.level}><span class="soft">${clock(r.time)}</span> ${r.level.padEnd(5)} ${r.logger} - ${r.message}${r.exception ? html`<details><summary>exception</summary>${r.exception}</details>` : nothing}</li>`)}
      ${shown.length ? nothing : html`<li class="soft">Nothing yet.</li>`}</ul>`;
}
