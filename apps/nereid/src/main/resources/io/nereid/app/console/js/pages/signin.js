// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
// Signing in with an API key or a token.

import {html} from '../../lib/lit-html/lit-html.js';
import {signIn} from '../api.js';
import {notice} from '../ui.js';

let error = '';
let busy = false;

export const view = (reason, done, update) => html`<main class="signin panel" tabindex="-1">
  <h1>Sign in to Nereid</h1>
  ${notice('bad', error || (reason.includes('needs credentials') ? '' : reason))}
  <form @submit=${async e => {
    e.preventDefault();
    const input = e.target.elements.key;
    busy = true;
    update();
    try {
      const session = await signIn(input.value.trim());
      input.value = '';
      error = '';
      done(session);
    } catch (failure) {
      error = failure.status === 403 ? `This key is valid, but it may not open the console: ${failure.message}` : failure.message;
      update();
    } finally {
      busy = false;
    }
  }}>
    <div class="field"><label for="key">API key or token</label>
      <input id="key" name="key" type="password" autocomplete="current-password" required size="34"></div>
    <button class="primary" ?disabled=${busy}>Sign in</button>
  </form>
  <p class="soft small">A key with the role <code>viewer</code> sees everything, one with <code>manager</code> may load models too:
    <code>nereid keys create NAME --role viewer --file keys.json</code></p></main>`;
