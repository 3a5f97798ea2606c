// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
// Parts that several pages use.

import {html, nothing, svg} from '../lib/lit-html/lit-html.js';

const STATES = {
  AVAILABLE: ['good', 'available'], LOADING: ['warn', 'loading'], WARMING: ['warn', 'warming up'], TRACKED: ['warn', 'waiting to load'],
  DRAINING: ['warn', 'draining'], UNLOADING: ['warn', 'unloading'], GONE: ['off', 'unloaded'], FAILED: ['bad', 'failed']
};

export function stateBadge(state) {
  const [kind, text] = STATES[state] ?? ['off', state];
  return html`<span class="state ${kind}">${text}</span>`;
}

/** The state of a model as a whole: that of the best of its versions, and whether another one failed. */
export function modelState(model) {
  if (model.versions.length === 0) {
    return html`<span class="state off">not loaded</span>`;
  }
  const order = ['AVAILABLE', 'WARMING', 'LOADING', 'TRACKED', 'DRAINING', 'UNLOADING', 'FAILED', 'GONE'];
  const states = model.versions.map(v => v.state).sort((a, b) => order.indexOf(a) - order.indexOf(b));
  return html`${stateBadge(states[0])}${states[0] === 'AVAILABLE' && states.includes('FAILED') ? html` <span class="state bad">a version failed</span>` : nothing}`;
}

export const tile = (label, value, note = nothing) => html`<div class="tile"><div class="label">${label}</div><div class="value">${value}</div><div class="note">${note}</div></div>`;

export const notice = (kind, text) => text ? html`<p class="notice ${kind}" role=${kind === 'bad' ? 'alert' : 'status'}>${text}</p>` : nothing;

/** A button that copies a text. */
export const copyButton = (text, label = 'Copy') => html`<button type="button" @click=${async e => {
  const button = e.currentTarget;
  try {
    await navigator.clipboard.writeText(text());
    button.textContent = 'Copied';
  } catch {
    button.textContent = 'Select the text and copy it';
  }
  setTimeout(() => { button.textContent = label; }, 1500);
}}>${label}</button>`;

/** Horizontal bars: [{label, value, text, colour}]; negative values go to the left of the middle. */
export function bars(items, describe) {
  const signed = items.some(i => i.value < 0);
  const most = Math.max(...items.map(i => Math.abs(i.value)), 1e-30);
  const left = 190;
  const right = 110;
  const width = 700;
  const span = width - left - right;
  const zero = signed ? left + span / 2 : left;
  const scale = (signed ? span / 2 : span) / most;
  const height = items.length * 24 + 4;
  return html`<svg class="bars" viewBox="0 0 ${width} ${height}" role="img" aria-label=${describe}>
    ${items.map((item, i) => bar(item, i * 24 + 3, zero, scale, left, width - right))}</svg>`;
}

function bar(item, y, zero, scale, left, end) {
  const length = Math.max(1, Math.abs(item.value) * scale);
  return svg`<g><text x=${left - 8} y=${y + 14} text-anchor="end">${shortened(item.label, 28)}<title>${item.label}</title></text>
    <rect class=${`fill-${item.value < 0 ? 4 : item.colour ?? 1}`} x=${item.value < 0 ? zero - length : zero} y=${y} width=${length} height="18" rx="2"></rect>
    <text class="soft" x=${end + 8} y=${y + 14}>${item.text}</text></g>`;
}

export const shortened = (text, most) => text.length <= most ? text : text.slice(0, most - 1) + '…';

/** One bar of parts: [{label, value, text}], and its legend. */
export function stack(parts, describe) {
  const sum = parts.reduce((a, p) => a + Math.max(0, p.value), 0);
  let x = 0;
  return html`<svg class="bars" viewBox="0 0 700 26" preserveAspectRatio="none" role="img" aria-label=${describe}>${parts.map((p, i) => {
    const width = sum > 0 ? Math.max(0, p.value) / sum * 700 : 0;
    const at = x;
    x += width;
    return svg`<rect class=${`fill-${i % 5 + 1}`} x=${at} y="0" width=${width} height="26"><title>${p.label}: ${p.text}</title></rect>`;
  })}</svg><ul class="legend">${parts.map((p, i) => html`<li><span class="key key-${i % 5 + 1}"></span>${p.label} ${p.text}</li>`)}</ul>`;
}

/**
 * Shows a dialog and returns whether it was confirmed.
 *
 * @param title the question
 * @param body a template
 * @param confirm the text of the button
 */
export function ask(render, title, body, confirm, kind = 'primary') {
  return new Promise(done => {
    const dialog = document.createElement('dialog');
    dialog.setAttribute('aria-labelledby', 'dialog-title');
    document.body.append(dialog);
    const close = value => {
      dialog.close();
      dialog.remove();
      done(value);
    };
    render(html`<h2 id="dialog-title">${title}</h2>${body}<div class="row">
      <button type="button" class=${kind} @click=${() => close(true)}>${confirm}</button>
      <button type="button" @click=${() => close(false)}>Cancel</button></div>`, dialog);
    dialog.addEventListener('cancel', e => {
      e.preventDefault();
      close(false);
    });
    dialog.showModal();
  });
}
