// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
// The routes of the server, from its OpenAPI document.

import {html, nothing} from '../../lib/lit-html/lit-html.js';
import {get, url} from '../api.js';
import {changed, store} from '../store.js';
import {copyButton, notice} from '../ui.js';

let document_ = null;
let error = '';
let search = '';
let open = new Set();
let source = 'openapi.json';

export const title = p => p.name ? `API of ${p.name}` : 'API';

export async function enter(p) {
  document_ = null;
  error = '';
  open = new Set();
  source = p.name ? `v2/models/${encodeURIComponent(p.name)}/openapi.json` : 'openapi.json';
  try {
    document_ = await get(source);
  } catch (e) {
    error = e.message;
  }
  changed();
}

const METHODS = ['get', 'put', 'post', 'delete', 'patch', 'head', 'options'];

function operations() {
  const words = search.toLowerCase();
  const groups = new Map();
  for (const [path, item] of Object.entries(document_.paths)) {
    for (const method of METHODS) {
      const operation = item[method];
      if (operation && `${method} ${path} ${operation.summary ?? ''}`.toLowerCase().includes(words)) {
        const tag = operation.tags?.[0] ?? 'other';
        groups.set(tag, [...groups.get(tag) ?? [], {path, method, operation, shared: item.parameters ?? []}]);
      }
    }
  }
  return groups;
}

/** Follows a reference within the document. */
function resolved(schema) {
  if (!schema?.$ref) {
    return schema;
  }
  return schema.$ref.replace(/^#\//, '').split('/').reduce((at, part) => at?.[part.replace(/~1/g, '/').replace(/~0/g, '~')], document_);
}

function content(title, media) {
  return Object.entries(media ?? {}).map(([type, {schema, example, examples}]) => {
    const shown = example ?? Object.values(examples ?? {})[0]?.value ?? resolved(schema)?.example;
    const text = shown === undefined ? null : typeof shown === 'string' ? shown : JSON.stringify(shown, null, 2);
    return html`<h3>${title} <span class="soft">${type}</span></h3>${text === null ? nothing : html`<div class="row">${copyButton(() => text, 'Copy the example')}</div><pre tabindex="0">${text}</pre>`}
      <details><summary>Schema${schema?.$ref ? ` ${schema.$ref.split('/').pop()}` : ''}</summary><pre tabindex="0">${JSON.stringify(resolved(schema), null, 2)}</pre></details>`;
  });
}

function detail({operation, shared}) {
  const parameters = [...shared, ...operation.parameters ?? []].map(resolved);
  return html`${operation.description ? html`<p>${operation.description}</p>` : nothing}
    ${parameters.length ? html`<table><thead><tr><th>Parameter</th><th>In</th><th>Type</th><th></th></tr></thead><tbody>${parameters.map(p => html`<tr><td><code>${p.name}</code>${p.required ? '' : html` <span class="soft">optional</span>`}</td>
      <td>${p.in}</td><td>${resolved(p.schema)?.type ?? ''}</td><td class="wrap">${p.description ?? ''}</td></tr>`)}</tbody></table>` : nothing}
    ${content('Request', resolved(operation.requestBody)?.content)}
    ${Object.entries(operation.responses ?? {}).map(([status, r]) => html`<h3>${status} <span class="soft">${resolved(r)?.description ?? ''}</span></h3>${content('', resolved(r)?.content)}`)}`;
}

function row(entry) {
  const key = `${entry.method} ${entry.path}`;
  return html`<details ?open=${open.has(key)} @toggle=${e => { if (e.target === e.currentTarget) { e.currentTarget.open ? open.add(key) : open.delete(key); changed(); } }}>
    <summary><span class="method">${entry.method.toUpperCase()}</span> <code>${entry.path}</code> <span class="soft">${entry.operation.summary ?? ''}</span>
      ${entry.operation['x-nereid-permission'] ? html` <span class="state off">${entry.operation['x-nereid-permission']}</span>` : nothing}</summary>
    ${open.has(key) ? detail(entry) : nothing}</details>`;
}

export function view(p) {
  const names = [...store.models.values()].filter(m => m.versions.some(v => v.state === 'AVAILABLE')).map(m => m.name).sort();
  return html`<h1>API${p.name ? html` of ${p.name}` : nothing}</h1>
    <div class="panel row"><label class="inline">Of <select @change=${e => { location.hash = e.target.value ? `#/api/${encodeURIComponent(e.target.value)}` : '#/api'; }}>
      <option value="">the server</option>${names.map(n => html`<option value=${n} ?selected=${n === p.name}>${n}</option>`)}</select></label>
      <label class="inline">Search <input type="search" .value=${search} @input=${e => { search = e.target.value; changed(); }}></label>
      <a href=${url(source).href} download="openapi.json">The OpenAPI document</a></div>
    ${notice('bad', error)}
    ${document_ ? [...operations()].map(([tag, list]) => html`<section class="panel"><h2>${tag}</h2>${list.map(row)}</section>`) : error ? nothing : html`<p class="soft">Loading …</p>`}`;
}
