// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
// One model: versions, load, latency, batches, metadata, configuration and where its values come from.

import {html, nothing} from '../../lib/lit-html/lit-html.js';
import '../chart.js';
import {get} from '../api.js';
import {changed, may, store} from '../store.js';
import {ago, bytes, micros, number, rate} from '../format.js';
import {bars, notice, stack, stateBadge, tile} from '../ui.js';
import {actions, load, obstacle, unload, versions} from '../manage.js';

let version = null;
let details = {};
let requests = null;
let timer = null;
let generation = 0;

export const title = p => p.name;

export function enter(p) {
  version = p.version ?? null;
  details = {};
  requests = null;
  store.watched = p.name;
  read(p.name);
  timer = setInterval(() => recent(p.name), 3000);
  recent(p.name);
}

export function leave() {
  clearInterval(timer);
  store.watched = '';
}

/** Reads what does not change from second to second: again when the model's versions or their states change. */
async function read(name) {
  const mine = ++generation;
  const at = `v2/models/${encodeURIComponent(name)}`;
  const [metadata, config, stored] = await Promise.allSettled([get(at), get(`${at}/config`), get(`console/api/models/${encodeURIComponent(name)}`)]);
  if (mine === generation) {
    details = {name, key: key(store.models.get(name)), metadata: metadata.value, config: config.value, stored: stored.value};
    changed();
  }
}

async function recent(name) {
  try {
    requests = (await get(`v2/models/${encodeURIComponent(name)}/requests/slow`)).model_requests;
    changed();
  } catch {
    requests = null; // not loaded, or not allowed
  }
}

const key = model => model ? JSON.stringify(model.versions.map(v => [v.version, v.state, v.loadMs])) : '';

export function view(p) {
  const model = store.models.get(p.name);
  if (!model) {
    return html`<h1>${p.name}</h1><p class="notice">${store.models.size ? 'There is not a model with this name.' : 'Loading …'}</p>`;
  }
  if (details.name === p.name && details.key !== key(model)) {
    details.key = key(model);
    read(p.name);
  }
  const shown = model.versions.find(v => v.version === version) ?? model.versions.find(v => v.state === 'AVAILABLE') ?? model.versions[0];
  const samples = shown ? store.samples.get(`${model.name}/${shown.version}`) ?? [] : [];
  const action = actions.get(model.name);
  const loaded = model.versions.some(v => !['GONE', 'FAILED'].includes(v.state));
  return html`<div class="row spread"><h1>${model.name}</h1><div class="row">
      ${loaded ? html`<a class="button" href="#/try/${encodeURIComponent(model.name)}">Try it</a>` : nothing}
      ${obstacle() ? nothing : html`<button type="button" ?disabled=${action?.busy} @click=${() => load(model)}>${loaded ? 'Reload' : 'Load'}</button>
        <button type="button" ?disabled=${action?.busy} @click=${() => versions(model)}>Versions …</button>
        ${loaded ? html`<button type="button" class="danger" ?disabled=${action?.busy} @click=${() => unload(model)}>Unload</button>` : nothing}`}</div></div>
    ${action ? notice(action.busy ? 'warn' : action.kind, action.text) : nothing}
    ${versionTable(model, shown)}
    ${shown?.rate === undefined ? nothing : live(model, shown, samples)}
    ${requestsPanel()}
    <div class="columns">${metadataPanel()}${storedPanel()}</div>
    ${configPanel()}`;
}

const versionTable = (model, shown) => html`<section class="panel"><h2>Versions</h2><div class="scroll" tabindex="0" role="region" aria-label="Versions"><table>
  <thead><tr><th>Version</th><th>State</th><th>Labels</th><th>Backend</th><th class="number">Load</th><th class="number">Memory</th><th class="number">Requests</th><th class="number">Last request</th><th>Reason</th></tr></thead>
  <tbody>${model.versions.map(v => html`<tr><td>${v === shown ? html`<strong>${v.version}</strong>` : html`<button type="button" @click=${() => { version = v.version; changed(); }}>${v.version}</button>`}</td>
    <td>${stateBadge(v.state)}</td><td>${labels(model, v.version)}</td><td>${v.backend || '–'}</td><td class="number">${v.loadMs ? micros(v.loadMs * 1000) : '–'}</td>
    <td class="number">${v.memory ? bytes(v.memory) : '–'}</td><td class="number">${rate(v.rate)}</td><td class="number">${v.rate === undefined ? '–' : ago(v.lastMs, store.time)}</td>
    <td class="wrap">${v.reason ?? ''}</td></tr>`)}
  ${model.versions.length ? nothing : html`<tr><td colspan="9" class="soft">The model is in the repository and was never loaded.</td></tr>`}</tbody></table></div></section>`;

function labels(model, v) {
  const parts = [];
  for (const [label, meaning] of Object.entries(model.labels ?? {})) {
    const sum = meaning.targets.reduce((a, [, w]) => a + w, 0);
    for (const [target, weight] of meaning.targets) {
      if (target === v) {
        parts.push(meaning.targets.length > 1 ? `${label} ${number(weight / sum * 100)} %` : label);
      }
    }
    for (const [target, share] of meaning.shadows) {
      if (target === v) {
        parts.push(`${label}: shadow of ${number(share * 100)} %`);
      }
    }
  }
  return parts.join(', ') || '–';
}

function live(model, v, samples) {
  const first = samples[0] ?? v;
  // What has happened since the page was opened, or since the start if that is nothing.
  const requestsSince = v.success - first.success;
  const since = requestsSince > 0 ? first : {success: 0, ns: [0, 0, 0, 0, 0], runs: 0, rows: 0, batches: [], cache: [0, 0]};
  const count = v.success - since.success;
  const average = i => count > 0 ? (v.ns[i] - since.ns[i]) / count / 1000 : 0;
  const known = average(1) + average(2) + average(3) + average(4);
  const runs = v.runs - since.runs;
  const batches = v.batches.map(([size, n]) => [size, n - (since.batches.find(b => b[0] === size)?.[1] ?? 0)]).filter(b => b[1] > 0);
  const hits = v.cache[0] - since.cache[0];
  const misses = v.cache[1] - since.cache[1];
  return html`<div class="tiles">${tile('Requests', rate(v.rate))}${tile('Latency p50', micros(v.p50))}${tile('Latency p99', micros(v.p99))}${tile('Errors', rate(v.failureRate), `${number(v.failure)} in all`)}
      ${tile('Queue', number(v.queued))}${tile('In progress', number(v.inFlight))}${tile('Rows per run', runs > 0 ? number((v.rows - since.rows) / runs) : '–')}
      ${hits + misses > 0 ? tile('Cache hits', `${number(hits / (hits + misses) * 100)} %`, `${number(hits)} of ${number(hits + misses)}`) : nothing}</div>
    <div class="columns"><section class="panel"><h2>Requests per second, version ${v.version}</h2><line-chart .label=${`Requests per second of ${model.name}`} .series=${[{label: 'requests', colour: 1, format: number}, {label: 'errors', colour: 4, format: number}]}
      .data=${[samples.map(s => s.time), samples.map(s => s.rate), samples.map(s => s.failureRate)]}></line-chart></section>
    <section class="panel"><h2>Latency, version ${v.version}</h2><line-chart .label=${`Latency of ${model.name}`} .series=${[{label: 'p50', colour: 1, format: micros}, {label: 'p99', colour: 2, format: micros}]}
      .data=${[samples.map(s => s.time), samples.map(s => s.p50 < 0 ? null : s.p50), samples.map(s => s.p99 < 0 ? null : s.p99)]}></line-chart></section>
    <section class="panel"><h2>Where a request's time goes</h2>${count > 0 ? html`${stack([{label: 'queue', value: average(1)}, {label: 'gather inputs', value: average(2)}, {label: 'compute', value: average(3)},
      {label: 'split outputs', value: average(4)}, {label: 'hand-offs and waiting for the response', value: Math.max(0, average(0) - known)}].map(p => ({...p, text: micros(p.value)})), 'Where the time goes')}
      <p class="soft small">Averages of ${number(count)} requests ${since === first ? 'since this page was opened' : 'since the version was loaded'}; ${micros(average(0))} from arrival to response.</p>`
      : html`<p class="soft">No requests yet.</p>`}</section>
    <section class="panel"><h2>Batch sizes</h2>${batches.length ? bars(batches.map(([size, n]) => ({label: `${size} row${size === 1 ? '' : 's'}`, value: n, text: `${number(n)} runs`, colour: 3})), 'Runs by batch size')
      : html`<p class="soft">No runs yet.</p>`}</section></div>`;
}

function requestsPanel() {
  const list = (requests ?? []).flatMap(v => [...v.errors.map(r => ({...r, bad: true, version: v.version})),
    ...[...v.slow, ...v.slowest.filter(r => !v.slow.some(s => s.id === r.id && s.time_ms === r.time_ms))].map(r => ({...r, version: v.version}))]);
  if (list.length === 0) {
    return nothing;
  }
  const parts = r => [['queue', r.queue_us], ['gather inputs', r.input_us], ['compute', r.compute_us], ['split outputs', r.output_us],
    ['other', r.total_us - r.queue_us - r.input_us - r.compute_us - r.output_us]].filter(([, t]) => t > 0).map(([n, t]) => `${n} ${micros(t)}`).join(' · ');
  const limits = (requests ?? []).filter(v => v.threshold_us !== undefined).map(v => `version ${v.version} from ${micros(v.threshold_us)}`).join(', ');
  return html`<section class="panel"><h2>Slow requests and errors</h2>${limits ? html`<p class="soft small">Slow is: ${limits}.</p>` : nothing}
    <div class="scroll" tabindex="0" role="region" aria-label="Slow requests and errors"><table>
    <thead><tr><th>When</th><th>Request</th><th>Version</th><th class="number">Rows</th><th class="number">Time</th><th>Why</th></tr></thead><tbody>
    ${list.sort((a, b) => b.time_ms - a.time_ms).slice(0, 40).map(r => html`<tr><td>${ago(r.time_ms)}</td><td class="wrap"><code>${r.id || '–'}</code></td><td>${r.version}</td><td class="number">${r.rows ?? '–'}</td>
      <td class="number">${micros(r.total_us)}</td><td class="wrap">${r.bad ? html`<span class="state bad">${r.code}</span> ${r.message}` : html`${r.cache_hit ? 'from the cache · ' : ''}${parts(r)}`}</td></tr>`)}</tbody></table></div></section>`;
}

const tensors = list => html`<table><thead><tr><th>Name</th><th>Type</th><th>Shape</th></tr></thead><tbody>${list.map(t => html`<tr><td class="wrap"><code>${t.name}</code></td><td>${t.datatype}</td><td>[${t.shape.join(', ')}]</td></tr>`)}</tbody></table>`;

const metadataPanel = () => details.metadata ? html`<section class="panel"><h2>Inputs and outputs</h2><h3>Inputs</h3>${tensors(details.metadata.inputs)}<h3>Outputs</h3>${tensors(details.metadata.outputs)}</section>` : nothing;

function storedPanel() {
  const s = details.stored;
  if (!s?.stored) {
    return nothing;
  }
  return html`<section class="panel"><h2>In the repository</h2><p class="wrap"><code>${s.directory}</code></p>
    <p>Versions: ${s.versions.map((v, i) => html`${i ? ', ' : ''}${v.version}${v.selected ? '' : html` <span class="soft">(not selected by the version policy)</span>`}`)}</p>
    ${s.problems.length ? html`<p class="notice warn">${s.problems.map(p => html`<span>${p}<br></span>`)}</p>` : nothing}
    ${s.configurationText === undefined ? html`<p class="soft">There is not a configuration file; the server has found everything itself.</p>`
      : html`<details><summary>${s.configurationFile.split('/').pop()}, as written</summary><pre tabindex="0">${s.configurationText}</pre></details>`}</section>`;
}

const empty = v => v === '' || v === 0 || v === false || v === null || Array.isArray(v) && v.length === 0 || typeof v === 'object' && v !== null && Object.keys(v).length === 0;

/** Where a value of the effective configuration comes from. */
function origin(field, value, written) {
  if (written && field in written) {
    return 'the configuration file';
  }
  return empty(value) ? 'default' : ['name', 'platform', 'backend', 'default_model_filename'].includes(field) ? 'found in the repository'
    : ['input', 'output', 'max_batch_size'].includes(field) ? 'read from the model' : 'default';
}

function configPanel() {
  if (!details.config) {
    return nothing;
  }
  const rows = Object.entries(details.config);
  const set = rows.filter(([, v]) => !empty(v));
  const table = list => html`<div class="scroll" tabindex="0" role="region" aria-label="Configuration"><table><thead><tr><th>Field</th><th>Value</th><th>From</th></tr></thead><tbody>${list.map(([field, value]) => html`<tr>
    <td><code>${field}</code></td><td class="wrap"><code>${typeof value === 'object' ? JSON.stringify(value) : String(value)}</code></td><td>${origin(field, value, details.stored?.written)}</td></tr>`)}</tbody></table></div>`;
  return html`<section class="panel"><h2>Configuration in effect</h2>${table(set)}
    <details><summary>${rows.length - set.length} fields without a value</summary>${table(rows.filter(([, v]) => empty(v)))}</details></section>`;
}
