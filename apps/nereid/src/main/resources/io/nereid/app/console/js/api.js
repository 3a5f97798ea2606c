// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
// Calls of the server. All paths are relative to the folder above the console, so that the page works behind a path prefix.

const base = new URL('../', new URL('.', location.href.split('#')[0]));
let csrfToken = null;
let signedOut = () => {};

/** The address of a path of the server, such as 'v2/models'. */
export const url = path => new URL(path, base);

/** The path below which the server's routes are for this browser. */
export const basePath = () => base.pathname;

/** Calls `f` when the server wants credentials. */
export const onSignedOut = f => { signedOut = f; };

/** An answer that is not a success. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function call(path, options = {}) {
  const headers = new Headers(options.headers);
  const method = options.method ?? 'GET';
  if (csrfToken && method !== 'GET') {
    headers.set('x-csrf-token', csrfToken);
  }
  let response;
  try {
    response = await fetch(url(path), {...options, headers, credentials: 'same-origin', cache: 'no-store', redirect: 'error'});
  } catch (e) {
    if (e.name === 'AbortError') {
      throw e;
    }
    throw new ApiError(0, 'The server does not answer.');
  }
  if (!response.ok) {
    const error = new ApiError(response.status, await messageOf(response));
    if (response.status === 401 && !options.signsIn) {
      csrfToken = null;
      signedOut(error);
    }
    throw error;
  }
  return response;
}

async function messageOf(response) {
  const text = await response.text();
  try {
    const json = JSON.parse(text);
    return String(json.error?.message ?? json.error ?? json.message ?? text);
  } catch {
    return text || `${response.status} ${response.statusText}`;
  }
}

/** Gets JSON. */
export const get = async (path, options) => (await call(path, options)).json();

/** Sends JSON and gets JSON; an empty answer is an empty object. */
export async function send(method, path, body, headers = {}) {
  const response = await call(path, {
    method,
    headers: {...(body === undefined ? {} : {'content-type': 'application/json'}), ...headers},
    body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
  });
  const text = await response.text();
  return {json: text.trim() ? JSON.parse(text) : {}, headers: response.headers};
}

/** Who the browser is for the server: {name, permissions, modelControl}. Throws 401 or 403. */
export async function session() {
  return keep(await get('console/api/session', {signsIn: true}));
}

function keep(session) {
  csrfToken = session.csrfToken ?? null;
  return session;
}

/** Opens a session with a key or token. The key goes into a header and nowhere else. */
export async function signIn(key) {
  const query = new URLSearchParams({path: basePath(), secure: String(location.protocol === 'https:')});
  const response = await call('console/api/session?' + query, {
    method: 'POST', headers: {authorization: 'Bearer ' + key}, signsIn: true
  });
  return keep(await response.json());
}

export async function signOut() {
  await call('console/api/session', {method: 'DELETE'});
  csrfToken = null;
}

/** The lines of JSON of an answer that goes on. */
async function* lines(path, signal) {
  const response = await call(path, {signal});
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const {done, value} = await reader.read();
    if (done) {
      return;
    }
    const parts = (rest + value).split('\n');
    rest = parts.pop();
    for (const part of parts) {
      if (part) {
        yield JSON.parse(part);
      }
    }
  }
}

/**
 * Follows an answer that goes on, and begins again when the connection or the server ends. While the page is not to be seen it follows
 * nothing: a browser has six connections for a server, and every open tab would take one of them.
 *
 * @param path the path
 * @param each receives each line
 * @param state receives 'open', or a text that says why there is no connection
 * @returns a function that ends it
 */
export function follow(path, each, state = () => {}) {
  let ended = false;
  let current = null;
  let wake = () => {};

  async function run() {
    for (let wait = 500; !ended; wait = Math.min(5000, wait * 2)) {
      if (document.hidden || left) {
        await new Promise(done => { wake = done; });
        wait = 500;
        continue;
      }
      const controller = new AbortController();
      current = controller;
      try {
        for await (const line of lines(path, controller.signal)) {
          wait = 500;
          state('open');
          each(line);
        }
        state('The server has ended the connection; connecting again …');
      } catch (e) {
        if (controller.signal.aborted) {
          continue;
        }
        if (e.status === 401) {
          return;
        }
        state(e.status === 403 ? e.message : 'The server does not answer; connecting again …');
      }
      await new Promise(done => {
        wake = done;
        setTimeout(done, wait);
      });
    }
  }

  let left = false;
  const look = () => {
    if (document.hidden || left) {
      current?.abort();
    } else {
      wake();
    }
  };
  // A page that the browser keeps for the way back would keep its connection too.
  const leave = () => { left = true; look(); };
  const back = () => { left = false; look(); };
  document.addEventListener('visibilitychange', look);
  addEventListener('pagehide', leave);
  addEventListener('pageshow', back);
  run();
  return () => {
    ended = true;
    document.removeEventListener('visibilitychange', look);
    removeEventListener('pagehide', leave);
    removeEventListener('pageshow', back);
    current?.abort();
    wake();
  };
}
