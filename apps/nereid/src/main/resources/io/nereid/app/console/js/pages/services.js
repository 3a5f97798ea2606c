// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
// The resources of the control plane: InferenceServices with revisions, traffic, scale and events; InferenceGraphs as pictures.

import {html, nothing, render, svg} from '../../lib/lit-html/lit-html.js';
import {get, send} from '../api.js';
import {changed, may, store} from '../store.js';
import {ago} from '../format.js';
import {ask, notice, shortened} from '../ui.js';

const API = 'console/api/control';
const GROUP = `${API}/apis/serving.kserve.io`;
let services = null;
let graphs = [];
let pods = [];
let events = [];
let error = '';
let timer = null;
let generation = 0;
/** The traffic that the user has chosen and not applied, by namespace/name. */
const chosen = new Map();
const results = new Map();

export const title = p => p.name || 'Services';

export function enter(p) {
  services = null;
  error = '';
  results.clear();
  chosen.clear();
  if (store.session.control) {
    refresh(p);
    timer = setInterval(() => refresh(p), 2000);
  }
}

export function leave() {
  clearInterval(timer);
}

async function refresh(p) {
  const mine = ++generation;
  try {
    const [isvc, graph, pod] = await Promise.all([get(`${GROUP}/v1beta1/inferenceservices`), get(`${GROUP}/v1alpha1/inferencegraphs`), get(`${API}/api/v1/pods`)]);
    const [namespace] = p.name.replace(/^graph\//, "").split('/');
    const event = p.name ? await get(`${API}/api/v1/namespaces/${encodeURIComponent(namespace)}/events`) : {items: []};
    if (mine === generation) {
      services = isvc.items;
      graphs = graph.items;
      pods = pod.items;
      events = event.items;
      error = '';
    }
  } catch (e) {
    error = e.message;
  }
  changed();
}

const key = o => `${o.metadata.namespace}/${o.metadata.name}`;
const condition = (o, type) => o.status?.conditions?.find(c => c.type === type);

function ready(o) {
  const c = condition(o, 'Ready');
  const [kind, text] = c?.status === 'True' ? ['good', 'ready'] : c?.status === 'False' ? ['bad', c.reason || 'not ready'] : ['warn', 'starting'];
  return html`<span class="state ${kind}">${text}</span>`;
}

const traffic = s => s.status?.components?.predictor?.traffic ?? [];
const share = s => traffic(s).filter(t => t.percent !== undefined).map(t => `${t.revisionName ?? 'latest'} ${t.percent} %`).join(', ') || '–';
const path = s => `${GROUP}/v1beta1/namespaces/${encodeURIComponent(s.metadata.namespace)}/inferenceservices/${encodeURIComponent(s.metadata.name)}`;

const table = list => html`<div class="scroll" tabindex="0" role="region" aria-label="InferenceServices"><table><thead><tr><th>Namespace</th><th>Name</th><th>State</th><th>Traffic</th><th>Model</th><th>URL</th></tr></thead><tbody>
  ${list.map(s => html`<tr><td>${s.metadata.namespace}</td><td><a href="#/services/${encodeURIComponent(s.metadata.namespace)}/${encodeURIComponent(s.metadata.name)}">${s.metadata.name}</a></td><td>${ready(s)}</td>
    <td>${share(s)}</td><td>${s.spec?.predictor?.model?.modelFormat?.name ?? 'container'}</td><td class="wrap"><code>${s.status?.url ?? '–'}</code></td></tr>`)}</tbody></table></div>`;

export function view(p) {
  if (!store.session.control) {
    return html`<h1>Services</h1><p class="notice">This server has no control plane. <code>nereid serve --control</code> serves KServe's InferenceServices and InferenceGraphs from their YAML.</p>`;
  }
  const service = services?.find(s => key(s) === p.name);
  const graph = graphs.find(g => `graph/${key(g)}` === p.name);
  return html`<h1>${p.name || 'Services'}</h1>${notice('bad', error)}
    ${services === null ? error ? nothing : html`<p class="soft">Loading …</p>` : service ? one(service) : graph ? oneGraph(graph) : p.name ? html`<p class="notice">It does not exist, or was deleted.</p>` : html`
      <section class="panel"><h2>InferenceServices</h2>${services.length ? table(services) : html`<p class="soft">None yet: <code>nereid apply -f examples/control/flowers.yaml</code></p>`}</section>
      ${graphs.length ? html`<section class="panel"><h2>InferenceGraphs</h2><ul>${graphs.map(g => html`<li><a href="#/services/graph/${encodeURIComponent(g.metadata.namespace)}/${encodeURIComponent(g.metadata.name)}">${key(g)}</a> ${ready(g)}</li>`)}</ul></section>` : nothing}`}`;
}

function one(s) {
  const of = pods.filter(p => p.metadata.namespace === s.metadata.namespace && p.metadata.labels?.['serving.kserve.io/inferenceservice'] === s.metadata.name);
  const own = events.filter(e => e.involvedObject?.name === s.metadata.name).sort((a, b) => (b.lastTimestamp ?? '').localeCompare(a.lastTimestamp ?? ''));
  const result = results.get(key(s));
  return html`${result ? notice(result.kind, result.text) : nothing}
    <section class="panel"><div class="row spread"><div>${ready(s)} <code>${s.status?.url ?? ''}</code></div></div>
      ${condition(s, 'Ready')?.message ? html`<p>${condition(s, 'Ready').message}</p>` : nothing}
      <details><summary>Conditions</summary><table><thead><tr><th>Type</th><th>Status</th><th>Reason</th><th>Message</th></tr></thead><tbody>${(s.status?.conditions ?? []).map(c => html`<tr><td>${c.type}</td><td>${c.status}</td><td>${c.reason ?? ''}</td>
        <td class="wrap">${c.message ?? ''}</td></tr>`)}</tbody></table></details></section>
    <div class="columns">${canary(s)}${scale(s)}</div>
    <section class="panel"><h2>Revisions</h2><div class="scroll" tabindex="0" role="region" aria-label="Revisions"><table><thead><tr><th>Revision</th><th>Component</th><th>Traffic</th><th>Replicas ready</th><th>Phase</th><th>Since</th></tr></thead><tbody>
      ${of.map(p => html`<tr><td>${p.metadata.name}</td><td>${p.metadata.labels?.component ?? ''}</td><td>${percent(s, p.metadata.name)}</td><td>${replicas(p)}</td><td>${p.status?.phase}</td><td>${ago(Date.parse(p.metadata.creationTimestamp))}</td></tr>`)}
      ${of.length ? nothing : html`<tr><td colspan="6" class="soft">Nothing runs.</td></tr>`}</tbody></table></div></section>
    <section class="panel"><h2>Events</h2>${own.length ? html`<div class="scroll" tabindex="0" role="region" aria-label="Events"><table><thead><tr><th>When</th><th>Type</th><th>Reason</th><th>Message</th><th class="number">Times</th></tr></thead><tbody>
      ${own.slice(0, 50).map(e => html`<tr><td>${ago(Date.parse(e.lastTimestamp))}</td><td>${e.type === 'Warning' ? html`<span class="state warn">Warning</span>` : e.type}</td><td>${e.reason}</td><td class="wrap">${e.message}</td><td class="number">${e.count ?? 1}</td></tr>`)}</tbody></table></div>`
      : html`<p class="soft">None.</p>`}</section>
    <section class="panel"><details><summary>Resource</summary><pre tabindex="0">${JSON.stringify({...s, metadata: {...s.metadata, managedFields: undefined}}, null, 2)}</pre></details></section>`;
}

const percent = (s, revision) => {
  const t = traffic(s).filter(x => x.revisionName === revision && x.percent !== undefined);
  return t.length ? `${t.reduce((a, x) => a + x.percent, 0)} %` : '–';
};

function replicas(pod) {
  const c = pod.status?.containerStatuses ?? [];
  const count = pod.metadata.annotations?.['nereid.io/replicas'];
  return count ?? (c.length ? `${c.filter(x => x.ready).length} of ${c.length}` : '–');
}

/** The share of the newest revision, as a slider: first a dry run, then the change. */
function canary(s) {
  const status = s.status?.components?.predictor ?? {};
  const newest = status.latestCreatedRevision;
  const stable = traffic(s).find(t => t.revisionName !== newest && t.percent > 0)?.revisionName ?? status.previousRolledoutRevision ?? status.latestRolledoutRevision;
  const two = newest && stable && stable !== newest;
  const now = traffic(s).filter(t => t.revisionName === newest).reduce((a, t) => a + (t.percent ?? 0), 0);
  const value = chosen.get(key(s)) ?? now;
  return html`<section class="panel"><h2>Traffic</h2><p>${share(s)}</p>${!two ? html`<p class="soft">There is one revision. A change of the service makes another one; with <code>canaryTrafficPercent</code> it first gets a part of the requests.</p>` : html`
    <div class="field"><label for="canary">Share of the newest revision ${newest}: <output id="canary-value">${value} %</output></label>
      <input id="canary" type="range" min="0" max="100" step="1" .value=${String(value)} ?disabled=${!may('control')} @input=${e => { chosen.set(key(s), Number(e.target.value)); changed(); }}></div>
    <p class="soft small">The rest goes to ${stable}. 100 promotes the newest revision, 0 rolls it back.</p>
    ${may('control') ? html`<div class="row"><button type="button" class="primary" ?disabled=${value === now} @click=${() => move(s, value, `${newest} gets ${value} %, ${stable} ${100 - value} %.`)}>Apply …</button>
      <button type="button" @click=${() => move(s, 100, `${newest} gets all requests.`)}>Promote …</button><button type="button" class="danger" @click=${() => move(s, 0, `${stable} gets all requests.`)}>Roll back …</button></div>` : nothing}`}</section>`;
}

const move = (s, value, effect) => change(s, {spec: {predictor: {canaryTrafficPercent: value}}}, `Change the traffic of ${key(s)}?`, effect, () => chosen.delete(key(s)));

/** Sends a patch as a dry run, shows what it does, and then applies it. */
async function change(s, patch, question, effect, done = () => {}) {
  const headers = {'content-type': 'application/merge-patch+json'};
  let warnings;
  try {
    const answer = await send('PATCH', `${path(s)}?dryRun=All`, patch, headers);
    warnings = answer.headers.get('warning');
  } catch (e) {
    results.set(key(s), {kind: 'bad', text: `The change would be refused: ${e.message}`});
    changed();
    return;
  }
  const agreed = await ask(render, question, html`<p>${effect}</p><p class="soft">The server has checked the change and would accept it:</p><pre tabindex="0">${JSON.stringify(patch)}</pre>${warnings ? notice('warn', warnings) : nothing}`, 'Apply');
  if (!agreed) {
    return;
  }
  try {
    await send('PATCH', path(s), patch, headers);
    results.set(key(s), {kind: 'good', text: effect});
    done();
  } catch (e) {
    results.set(key(s), {kind: 'bad', text: e.message});
  }
  changed();
}

function scale(s) {
  const p = s.spec?.predictor ?? {};
  return html`<section class="panel"><h2>Scale</h2><form @submit=${e => {
    e.preventDefault();
    const f = e.target.elements;
    const number = field => field.value === '' ? null : Number(field.value);
    change(s, {spec: {predictor: {minReplicas: number(f.min), maxReplicas: number(f.max)}}}, `Change the scale of ${key(s)}?`, `Between ${f.min.value || 'the default'} and ${f.max.value || 'any number of'} replicas.`);
  }}><div class="row field"><label class="inline">at least <input name="min" type="number" min="0" max="1000" .value=${String(p.minReplicas ?? '')} ?disabled=${!may('control')}></label>
    <label class="inline">at most <input name="max" type="number" min="0" max="1000" .value=${String(p.maxReplicas ?? '')} ?disabled=${!may('control')}></label>
    ${may('control') ? html`<button>Apply …</button>` : nothing}</div></form>
    <p class="soft small">At least 0 lets the service scale to zero; the next request starts it again.</p></section>`;
}

function oneGraph(g) {
  return html`<section class="panel">${ready(g)} <code>${g.status?.url ?? ''}</code>${picture(g)}</section>
    <section class="panel"><details><summary>Resource</summary><pre tabindex="0">${JSON.stringify({...g, metadata: {...g.metadata, managedFields: undefined}}, null, 2)}</pre></details></section>`;
}

/** Draws the nodes in columns by their distance from the root, and a line for each step. */
function picture(g) {
  const nodes = g.spec?.nodes ?? {};
  const boxes = new Map();
  const edges = [];
  const columns = [];
  const place = (id, depth, label, kind) => {
    if (!boxes.has(id)) {
      columns[depth] = (columns[depth] ?? 0) + 1;
      boxes.set(id, {x: 20 + depth * 250, y: 20 + (columns[depth] - 1) * 84, label, kind});
      return true;
    }
    return false;
  };
  const walk = (name, depth) => {
    if (!place(`node:${name}`, depth, name, nodes[name]?.routerType ?? 'missing')) {
      return;
    }
    (nodes[name]?.steps ?? []).forEach((step, i) => {
      const target = step.nodeName ? `node:${step.nodeName}` : `service:${step.serviceName ?? step.serviceUrl}`;
      if (step.nodeName) {
        walk(step.nodeName, depth + 1);
      } else {
        place(target, depth + 1, step.serviceName ?? step.serviceUrl ?? '?', 'service');
      }
      const notes = [nodes[name].routerType === 'Sequence' ? `${i + 1}.` : '', step.weight === undefined ? '' : `${step.weight} %`, step.condition ? shortened(step.condition, 22) : '', step.dependency === 'Hard' ? 'hard' : ''];
      edges.push({from: `node:${name}`, to: target, text: notes.filter(Boolean).join(' ')});
    });
  };
  walk('root', 0);
  const width = 20 + columns.length * 250;
  const height = 30 + Math.max(...columns) * 84;
  const text = edges.map(e => `${boxes.get(e.from).label} to ${boxes.get(e.to).label} ${e.text}`).join('; ');
  return html`<svg class="bars" viewBox="0 0 ${width} ${height}" role="img" aria-label=${`Steps of the graph: ${text}`}>
    ${edges.map(e => line(boxes.get(e.from), boxes.get(e.to), e.text))}${[...boxes.values()].map(box)}</svg>`;
}

const line = (a, b, text) => svg`<path class="edge" d=${`M${a.x + 160} ${a.y + 25} C${a.x + 205} ${a.y + 25} ${b.x - 45} ${b.y + 25} ${b.x} ${b.y + 25}`}></path>
  <text class="soft" x=${(a.x + 160 + b.x) / 2} y=${(a.y + b.y) / 2 + 20} text-anchor="middle">${text}</text>`;

const box = b => svg`<g><rect class="node" x=${b.x} y=${b.y} width="160" height="50" rx=${b.kind === 'service' ? 25 : 6}></rect><text x=${b.x + 80} y=${b.y + 22} text-anchor="middle">${shortened(b.label, 22)}<title>${b.label}</title></text>
  <text class="soft" x=${b.x + 80} y=${b.y + 39} text-anchor="middle">${b.kind}</text></g>`;
