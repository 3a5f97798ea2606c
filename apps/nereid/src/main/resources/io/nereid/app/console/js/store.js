// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
// What the page knows of the server, kept up to date by the live stream.

import {follow} from './api.js';

const HISTORY = 900;
const SAMPLES = 300;
const listeners = new Set();

export const store = {
  /** @type {{name: string, permissions: string[], modelControl: boolean} | null} */
  session: null,
  /** 'open', or why there is no connection. */
  connection: 'connecting …',
  hello: null,
  server: null,
  /** The server's figures of the past minutes, a list for each. */
  history: [],
  /** Models by name. */
  models: new Map(),
  /** Past figures by 'model/version', for the charts of one model. */
  samples: new Map(),
  /** The model whose page is open. */
  watched: '',
  time: 0
};

export const may = permission => store.session?.permissions.includes(permission) ?? false;

/** Calls `f` after each change; returns a function that ends it. */
export function onChange(f) {
  listeners.add(f);
  return () => listeners.delete(f);
}

export const changed = () => listeners.forEach(f => f());

let end = null;

export function start() {
  end?.();
  end = follow('console/api/live', line => {
    if (line.type === 'hello') {
      // A new connection: all models follow. A server that was started again counts from the beginning.
      if (line.started !== store.hello?.started) {
        store.samples.clear();
      }
      store.hello = line;
      store.history = line.history;
      store.models.clear();
    } else if (line.type === 'tick') {
      tick(line);
    }
    changed();
  }, state => {
    if (store.connection !== state) {
      store.connection = state;
      changed();
    }
  });
}

export function stop() {
  end?.();
  end = null;
}

function tick(line) {
  store.time = line.server?.time ?? Date.now();
  if (line.server) {
    const last = store.history[store.history.length - 1];
    store.server = line.server;
    if (!last || last.time !== line.server.time) {
      store.history.push(line.server);
      if (store.history.length > HISTORY) {
        store.history.shift();
      }
    }
  }
  line.gone.forEach(name => store.models.delete(name));
  for (const model of line.models) {
    store.models.set(model.name, model);
    sample(model);
  }
  const watched = store.models.get(store.watched);
  if (watched && !line.models.includes(watched)) {
    sample(watched);
  }
}

/** Keeps a model's figures for its charts: when they change, and each second while its page is open. */
function sample(model) {
  for (const version of model.versions) {
    if (version.rate === undefined) {
      continue;
    }
    const key = `${model.name}/${version.version}`;
    const samples = store.samples.get(key) ?? [];
    const last = samples[samples.length - 1];
    if (last && store.time - last.time > 2500) {
      // Nothing had changed until a second ago: without this sample the chart would draw a slope.
      samples.push({...last, time: store.time - 1000});
    }
    samples.push({...version, time: store.time});
    samples.splice(0, Math.max(0, samples.length - SAMPLES));
    store.samples.set(key, samples);
  }
}

/** The sums of a model's versions. */
export function totals(model) {
  const sum = {rate: 0, failureRate: 0, queued: 0, inFlight: 0, memory: 0, p50: -1, p99: -1, lastMs: 0};
  for (const v of model.versions) {
    sum.rate += v.rate ?? 0;
    sum.failureRate += v.failureRate ?? 0;
    sum.queued += v.queued ?? 0;
    sum.inFlight += v.inFlight ?? 0;
    sum.memory += v.memory;
    // of several versions the slowest counts: a quantile cannot be added up
    sum.p50 = Math.max(sum.p50, v.p50 ?? -1);
    sum.p99 = Math.max(sum.p99, v.p99 ?? -1);
    sum.lastMs = Math.max(sum.lastMs, v.lastMs ?? 0);
  }
  return sum;
}
