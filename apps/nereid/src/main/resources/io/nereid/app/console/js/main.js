// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
// The frame of the console: sign-in, navigation, pages. A page is a module with `title`, `view(parameters)`, and optionally `enter(parameters, update)`
// and `leave()`.

import {html, nothing, render} from '../lib/lit-html/lit-html.js';
import {ApiError, get, onSignedOut, session, signOut} from './api.js';
import {changed, may, onChange, start, stop, store} from './store.js';
import {duration} from './format.js';
import {notice} from './ui.js';
import * as overview from './pages/overview.js';
import * as models from './pages/models.js';
import * as model from './pages/model.js';
import * as tryIt from './pages/try.js';
import * as services from './pages/services.js';
import * as explain from './pages/explain.js';
import * as log from './pages/log.js';
import * as api from './pages/api.js';
import * as settings from './pages/settings.js';
import * as signInPage from './pages/signin.js';

const PAGES = {overview, models, model, try: tryIt, services, explain, log, api, settings};
const MENU = [['overview', 'Overview'], ['models', 'Models'], ['try', 'Try it'], ['explain', 'Explain'], ['services', 'Services'], ['log', 'Log'],
  ['api', 'API'], ['settings', 'Settings']];

const root = document.getElementById('app');
let current = null;
let parameters = {};
/** 'checking', 'in', 'out' (credentials are needed) or 'closed' (they would not help). */
let access = 'checking';
let reason = '';
let pending = false;

/** The route: '#/model/iris?version=2' is the page 'model' with {name: 'iris', version: '2'}. */
function route() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const [page = '', ...rest] = path.split('/');
  return {page: PAGES[page] ? page : 'overview', parameters: {...Object.fromEntries(new URLSearchParams(query)), name: decodeURIComponent(rest.join('/'))}};
}

function navigate() {
  const next = route();
  const same = current === next.page && parameters.name === next.parameters.name;
  if (!same) {
    PAGES[current]?.leave?.();
  }
  current = next.page;
  parameters = next.parameters;
  if (access === 'in' && !same) {
    PAGES[current].enter?.(parameters, update);
    document.title = `${PAGES[current].title(parameters)} · Nereid`;
    update();
    document.querySelector('main')?.focus({preventScroll: true});
    scrollTo(0, 0);
  }
  update();
}

/** Draws the page at the next frame, however often it is called. */
function update() {
  if (!pending) {
    pending = true;
    requestAnimationFrame(() => {
      pending = false;
      draw();
    });
  }
}

function draw() {
  if (access === 'out') {
    render(signInPage.view(reason, signedIn, update), root);
  } else if (access === 'closed') {
    render(html`<main class="signin" tabindex="-1"><h1>Nereid</h1>${notice('bad', reason)}
      <button type="button" @click=${check}>Try again</button></main>`, root);
  } else if (access === 'in') {
    render(frame(), root);
  }
}

const frame = () => html`
  <a class="skip" href="#main" @click=${e => { e.preventDefault(); document.querySelector('main').focus(); }}>To the content</a>
  <div class="shell">
    <nav aria-label="Pages">
      <div class="brand"><img src="favicon.svg" alt="">Nereid</div>
      ${MENU.map(([page, text]) => html`<a href="#/${page}" aria-current=${page === current || page === 'models' && current === 'model' ? 'page' : nothing}>${text}</a>`)}
      <div class="foot">${store.hello ? html`<div>Version ${store.hello.version}</div><div>Up ${duration((store.time || Date.now()) - store.hello.started)}</div>` : nothing}
        <div>Caller: ${store.session.name}</div>
        ${store.session.csrfToken ? html`<button type="button" @click=${leave}>Sign out</button>` : nothing}</div>
    </nav>
    <main id="main" tabindex="-1">
      ${store.connection === 'open' ? nothing : html`<p class="notice warn" role="status">${store.connection}</p>`}
      ${PAGES[current].view(parameters)}
    </main>
  </div>`;

async function leave() {
  stop();
  await signOut().catch(() => {});
  store.session = null;
  await check();
}

function signedIn(session) {
  store.session = session;
  access = 'in';
  reason = '';
  // The sign-in page has no part in common with the frame.
  render(nothing, root);
  start();
  current = null;
  navigate();
}

async function check() {
  try {
    signedIn(await session());
  } catch (e) {
    if (e instanceof ApiError && e.status === 0) {
      access = 'closed';
      reason = e.message;
    } else {
      access = e.status === 401 ? 'out' : 'closed';
      reason = e.status === 401 ? '' : e.message;
    }
    update();
  }
}

onSignedOut(e => {
  stop();
  access = 'out';
  reason = e.message;
  update();
});
onChange(update);
addEventListener('hashchange', navigate);
navigate();
check();
