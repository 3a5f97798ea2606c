// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
// Loading and unloading models: each action first shows what it will do.

import {html, nothing, render} from '../lib/lit-html/lit-html.js';
import {get, send} from './api.js';
import {changed, may, store} from './store.js';
import {ask} from './ui.js';

/** What has been started and not yet answered, by model, and the last result. */
export const actions = new Map();

/** Whether the buttons are there, or why not. */
export function obstacle() {
  return !may('manage') ? 'You may look, and not load or unload: that needs the permission manage.'
    : !store.session.modelControl ? 'The server\'s model control mode does not let clients load and unload models.' : '';
}

const at = name => `v2/repository/models/${encodeURIComponent(name)}`;

async function run(name, doing, done, action) {
  actions.set(name, {busy: true, text: doing});
  changed();
  try {
    await action();
    actions.set(name, {busy: false, kind: 'good', text: done});
  } catch (e) {
    actions.set(name, {busy: false, kind: 'bad', text: e.message});
  }
  changed();
}

const stored = async name => {
  try {
    return await get(`console/api/models/${encodeURIComponent(name)}`);
  } catch {
    return {stored: false, versions: []};
  }
};

const list = versions => versions.length ? versions.join(', ') : 'none';

/** The versions that serve now, as the server says it: the live data may be a second old. */
async function served(model) {
  const {json} = await send('POST', 'v2/repository/index', {});
  return json.filter(m => m.name === model.name && m.state === 'READY').map(m => m.version);
}

/** The plan: the versions that stay, are loaded and are unloaded. */
function plan(now, next) {
  return html`<table><tbody>
    <tr><th>serves now</th><td>${list(now)}</td></tr>
    <tr><th>will load</th><td>${list(next.filter(v => !now.includes(v)))}</td></tr>
    <tr><th>will be read again</th><td>${list(next.filter(v => now.includes(v)))}</td></tr>
    <tr><th>will unload</th><td>${list(now.filter(v => !next.includes(v)))}</td></tr></tbody></table>`;
}

export async function load(model) {
  const [on, now] = await Promise.all([stored(model.name), served(model)]);
  const next = on.stored ? on.versions.filter(v => v.selected).map(v => v.version) : now;
  const again = now.length > 0;
  const broken = on.problems ?? [];
  if (await ask(render, `${again ? 'Reload' : 'Load'} ${model.name}?`, html`
    <p>${on.stored ? html`The model is read from <code>${on.directory}</code> with the configuration that is stored there. While it loads, what serves now goes on serving.`
      : 'The model does not come from the repository; its source loads it again.'}</p>
    ${on.stored ? plan(now, next) : nothing}
    ${broken.length ? html`<p class="notice warn">${broken.map(p => html`<span>${p}<br></span>`)}</p>` : nothing}`, again ? 'Reload' : 'Load')) {
    await run(model.name, again ? 'reloading …' : 'loading …', 'The model is loaded.', () => send('POST', `${at(model.name)}/load`, {}));
  }
}

export async function unload(model) {
  const now = await served(model);
  if (await ask(render, `Unload ${model.name}?`, html`<p>Requests in progress finish; later ones are refused with 404 or 400 until the model is loaded again.</p>${plan(now, [])}`,
    'Unload', 'danger')) {
    await run(model.name, 'unloading …', 'The model is unloaded.', () => send('POST', `${at(model.name)}/unload`, {}));
  }
}

/** Lets the user choose which versions serve: sends the configuration with another version policy. */
export async function versions(model) {
  const [on, now] = await Promise.all([stored(model.name), served(model)]);
  if (!on.stored) {
    await ask(render, `Versions of ${model.name}`, html`<p>The model does not come from the repository; its versions are chosen where it comes from.</p>`, 'Close');
    return;
  }
  const all = on.versions.map(v => v.version);
  const chosen = new Set(now.filter(v => all.includes(v)));
  const host = document.createElement('div');
  const draw = () => render(html`
    <fieldset><legend>Versions that serve</legend>${on.versions.map(v => html`<label class="inline"><input type="checkbox" .checked=${chosen.has(v.version)}
      @change=${e => { e.target.checked ? chosen.add(v.version) : chosen.delete(v.version); draw(); }}> ${v.version}${v.error ? html` <span class="soft">(${v.error})</span>` : nothing}</label> `)}</fieldset>
    ${plan(now, all.filter(v => chosen.has(v)))}
    <p class="soft small">Requests without a version go to the highest one that serves. The choice is in force until the model is reloaded from its stored configuration,
      or the server restarts; to keep it, set <code>version_policy</code> in config.pbtxt.</p>`, host);
  draw();
  if (await ask(render, `Versions of ${model.name}`, html`${host}`, 'Apply')) {
    const next = all.filter(v => chosen.has(v));
    if (next.length === 0) {
      actions.set(model.name, {busy: false, kind: 'bad', text: 'At least one version must be chosen; Unload ends all of them.'});
      changed();
      return;
    }
    await run(model.name, 'changing versions …', `Version ${list(next)} serves.`, async () => {
      const config = {...on.written, name: model.name, version_policy: {specific: {versions: next.map(Number)}}};
      if (!config.backend && !config.platform) {
        // The stored configuration left it to the server to find the backend, which an override may not.
        const loaded = now.length ? await get(`v2/models/${encodeURIComponent(model.name)}/config`) : {};
        Object.assign(config, loaded.platform ? {platform: loaded.platform} : {}, loaded.backend ? {backend: loaded.backend} : {});
      }
      await send('POST', `${at(model.name)}/load`, {parameters: {config: JSON.stringify(config)}});
    });
  }
}
