// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
// What the server does now, and did in the past minutes.

import {html, nothing} from '../../lib/lit-html/lit-html.js';
import '../chart.js';
import {store, totals} from '../store.js';
import {bytes, micros, number, rate} from '../format.js';
import {bars, modelState, tile} from '../ui.js';

export const title = () => 'Overview';

const column = name => store.history.map(p => p[name] < 0 ? null : p[name]);

function chart(label, series) {
  return html`<section class="panel"><h2>${label}</h2><line-chart .label=${label} .series=${series}
    .data=${[store.history.map(p => p.time), ...series.map(s => column(s.key))]}></line-chart></section>`;
}

export function view() {
  const s = store.server;
  const models = [...store.models.values()];
  const serving = models.filter(m => m.versions.some(v => v.state === 'AVAILABLE')).length;
  const failed = models.filter(m => m.versions.some(v => v.state === 'FAILED'));
  const busiest = models.map(m => ({model: m, ...totals(m)})).filter(m => m.rate + m.failureRate > 0).sort((a, b) => b.rate - a.rate).slice(0, 8);
  const largest = models.map(m => ({label: m.name, value: totals(m).memory})).filter(m => m.value > 0).sort((a, b) => b.value - a.value).slice(0, 8);
  return html`<h1>Overview</h1>
    <div class="tiles">
      ${tile('Models serving', html`${serving}`, failed.length ? html`<a href="#/models?state=failed">${failed.length} failed</a>` : html`of ${models.length}`)}
      ${s ? html`${tile('Requests', html`<span id="request-rate">${rate(s.rate)}</span>`, 'average of 10 s')}
      ${tile('Errors', rate(s.failureRate), 'average of 10 s')}
      ${tile('Latency p50', micros(s.p50), 'of the last 10 s')}
      ${tile('Latency p99', micros(s.p99), 'of the last 10 s')}
      ${tile('Queue', number(s.queued), 'requests that wait')}
      ${tile('In progress', number(s.inFlight), `${number(s.connections)} connections`)}
      ${tile('Processors', number(s.cores), `of ${store.hello?.processors ?? '–'} in use`)}
      ${tile('Memory', bytes(s.resident), `heap ${bytes(s.heap)} of ${bytes(store.hello?.heapLimit)}`)}` : nothing}
    </div>
    ${s ? html`<div class="columns">
      ${chart('Requests per second', [{label: 'requests', key: 'rate', colour: 1, format: number}, {label: 'errors', key: 'failureRate', colour: 4, format: number}])}
      ${chart('Latency', [{label: 'p50', key: 'p50', colour: 1, format: micros}, {label: 'p99', key: 'p99', colour: 2, format: micros}])}
      ${chart('Processors and queue', [{label: 'processors', key: 'cores', colour: 3, format: number}, {label: 'queue', key: 'queued', colour: 2, format: number}])}
      ${chart('Memory', [{label: 'process', key: 'resident', colour: 1, format: bytes}, {label: 'heap', key: 'heap', colour: 3, format: bytes},
        {label: 'pooled outside the heap', key: 'direct', colour: 2, format: bytes}])}
    </div>` : html`<p class="notice">The server's own figures are for callers who may see all models.</p>`}
    <div class="columns">
      <section class="panel"><h2>Busiest models</h2>${busiest.length ? html`<div class="scroll" tabindex="0" role="region" aria-label="Busiest models"><table>
        <thead><tr><th>Model</th><th class="number">Requests</th><th class="number">p99</th><th class="number">Errors</th><th class="number">Queue</th></tr></thead>
        <tbody>${busiest.map(b => html`<tr><td class="wrap"><a href="#/model/${encodeURIComponent(b.model.name)}">${b.model.name}</a></td>
          <td class="number">${rate(b.rate)}</td><td class="number">${micros(b.p99)}</td><td class="number">${rate(b.failureRate)}</td>
          <td class="number">${number(b.queued)}</td></tr>`)}</tbody></table></div>`
        : html`<p class="soft">No requests in the last seconds. ${serving ? html`<a href="#/try">Try a model</a>.` : nothing}</p>`}</section>
      ${largest.length ? html`<section class="panel"><h2>Memory by model</h2>${bars(largest.map(m => ({...m, text: bytes(m.value)})), 'Memory by model')}</section>` : nothing}
      ${failed.length ? html`<section class="panel"><h2>Models that failed</h2><ul>${failed.slice(0, 20).map(m => html`<li>
        <a href="#/model/${encodeURIComponent(m.name)}">${m.name}</a> ${modelState(m)}
        <div class="small">${m.versions.find(v => v.state === 'FAILED')?.reason}</div></li>`)}</ul></section>` : nothing}
    </div>`;
}
