// @ts-check
// Calls the service: CSRF token, one refresh for all tabs, one repeat; changes only for whom they
// are meant.

import { csrfToken, keep, kept } from "./kept.js";

/** @import { Data, Method, Options, Path } from "../../types" */
/** @typedef {{ body?: unknown, form?: FormData, signal?: AbortSignal, asBlob?: boolean }} Sent */

const API = "/api/v1";
const REFRESHED = "gatehouse-refreshed";
const JUST_NOW_MS = 5000;
const OTHER_USER = "auth.session_user_mismatch";
const IS_TOKEN_REFUSED = /^auth\.token_(missing|expired|invalid)$/;
// Where token_invalid is about a flow and not the session, or the session is renewed or ended
// anyway.
const IS_LEFT_ALONE = /\/(setup|register|login)\/finish$|\/auth\/(refresh|logout)$/;

/** Why a call did not succeed; without an answer of the service the status is 0. */
export class Refusal extends Error {
  /**
   * @param {object} about
   * @param {number} about.status
   * @param {string} about.code
   * @param {string} [about.msg]
   * @param {Record<string, unknown> | null} [about.data]
   * @param {number} [about.retryAfter]
   * @param {string} [about.requestId]
   * @param {boolean} about.isChange
   */
  constructor({ status, code, msg = "", data = null, retryAfter = 0, requestId = "", isChange }) {
    super(msg || code);
    this.status = status;
    this.code = code;
    this.msg = msg;
    /** What else the service says of it. */
    this.data = data;
    this.retryAfter = retryAfter;
    this.requestId = requestId;
    /** Whether it would have changed something, so that it must not be repeated blindly. */
    this.isChange = isChange;
  }

  /** Whether asking again later may help. */
  get isPassing() {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504;
  }

  /** Whether there is no session to go on with. */
  get isSignedOut() {
    return this.status === 401 && /^auth\.(token_|refresh_token_)/.test(this.code);
  }
}

/** Whose session the page believes to be in; 0 before it knows. */
let userId = 0;

/** Changes are meant for this account from now on, and refused if the cookies are another's. */
export function meanFor(/** @type {number} */ id) {
  userId = id;
}

/** What a change says of itself. @returns {Record<string, string>} */
export function headersOfChange() {
  return {
    ...(csrfToken() && { "X-CSRF-Token": csrfToken() }),
    ...(userId && { "X-Session-User": String(userId) }),
  };
}

/**
 * Where the cookies are another account's by now, the page begins anew for that one, and says so.
 * @param {unknown} error
 */
export function noteOtherUser(error) {
  if (!(error instanceof Refusal) || error.code !== OTHER_USER || !userId) return;
  window.history.replaceState({ ...window.history.state, notice: `error.${OTHER_USER}` }, "");
  window.location.reload();
}

/**
 * Returns `data` of the answer. Where a token was refused, nothing was done: the call is repeated
 * once.
 * @template {Method} M
 * @template {Path<M>} P
 * @param {M} method
 * @param {P} path below /api/v1, with {names} for `options.path`
 * @param {Options<M, P>} [options]
 * @returns {Promise<Data<M, P>>}
 * @throws {Refusal}
 */
export function call(method, path, options = {}) {
  return /** @type {Promise<Data<M, P>>} */ (answered(method, addressOf(path, options), options));
}

/**
 * The same of what is answered by a file.
 * @template {Method} M
 * @template {Path<M>} P
 * @param {M} method
 * @param {P} path
 * @param {Options<M, P>} [options]
 * @returns {Promise<Blob>}
 * @throws {Refusal}
 */
export function callForFile(method, path, options = {}) {
  const sent = { ...options, asBlob: true };
  return /** @type {Promise<Blob>} */ (answered(method, addressOf(path, options), sent));
}

/**
 * @param {Method} method
 * @param {string} url
 * @param {Sent} options
 */
async function answered(method, url, options) {
  try {
    return await send(method, url, options).catch(async (error) => {
      if (
        IS_LEFT_ALONE.test(url) ||
        !csrfToken() ||
        !(error instanceof Refusal) ||
        !(await hasNewToken(error))
      )
        throw error;
      return send(method, url, options);
    });
  } catch (error) {
    noteOtherUser(error);
    throw error;
  }
}

/** @param {Refusal} refusal */
async function hasNewToken({ code }) {
  // Another tab's refresh changed the cookie when the header was written already.
  return code === "auth.csrf_token_invalid" || (IS_TOKEN_REFUSED.test(code) && refresh());
}

/**
 * Tells whether there is a session to go on with.
 * @returns {Promise<boolean>}
 * @throws {Refusal} if nobody knows
 */
export function refresh() {
  return alone(async () => {
    const last = Number(kept("localStorage", REFRESHED));
    if (Math.abs(Date.now() - last) < JUST_NOW_MS) return true; // another tab has just done it
    try {
      await send("post", `${API}/auth/refresh`, {});
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      error.isChange = false; // of what was asked for, nothing has been sent again
      if (![401, 403].includes(error.status)) throw error;
      if (error.code !== "auth.refresh_token_stale") return false;
    }
    keep("localStorage", REFRESHED, String(Date.now()));
    return true;
  });
}

/**
 * Ends the session; without one, removes the cookies that scripts cannot.
 * @returns {Promise<void>}
 * @throws {Refusal}
 */
export function logOut() {
  return alone(async () => {
    keep("localStorage", REFRESHED, "");
    await send("post", `${API}/auth/logout`, {});
  });
}

/** @type {Promise<unknown>} */
let running = Promise.resolve();

/**
 * Does one thing at a time: over all tabs where browsers have locks, on https and localhost, and
 * for sites for which they keep anything.
 * @template T
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
async function alone(work) {
  let isBegun = false;
  const begin = () => {
    isBegun = true;
    return work();
  };
  try {
    if (navigator.locks) return /** @type {T} */ (await navigator.locks.request(REFRESHED, begin));
  } catch (error) {
    if (isBegun) throw error;
  }
  const next = running.catch(() => undefined).then(work);
  running = next;
  return next;
}

/**
 * @param {string} path
 * @param {{ path?: Record<string, unknown>, query?: Record<string, unknown> }} options
 */
function addressOf(path, options) {
  const filled = path.replace(/\{(\w+)\}/g, (_, name) =>
    encodeURIComponent(String(options.path?.[name])),
  );
  const pairs = Object.entries(options.query ?? {}).filter(
    ([, value]) => value != null && value !== "",
  );
  const query = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
  return API + filled + (query && `?${query}`);
}

/**
 * @param {Method} method
 * @param {string} url
 * @param {Sent} options
 * @returns {Promise<unknown>}
 */
async function send(method, url, { body, form, signal, asBlob }) {
  const isChange = method !== "get";
  const headers = isChange ? headersOfChange() : {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(url, {
      method: method.toUpperCase(),
      headers,
      body: body === undefined ? form : JSON.stringify(body),
      credentials: "same-origin",
      signal,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refusal({ status: 0, code: "network", isChange });
  }
  if (asBlob && answer.ok) return answer.blob();
  const { code, msg, data } = await answer.json().catch(() => ({})); // a proxy's own answer
  if (answer.ok && code === "success") return data;
  throw new Refusal({
    status: answer.status,
    code: code ?? "unknown",
    msg,
    data,
    retryAfter: Number(answer.headers.get("Retry-After") ?? 0),
    requestId: answer.headers.get("X-Request-ID") ?? "",
    isChange,
  });
}
