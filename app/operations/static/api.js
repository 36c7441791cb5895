// Calls the service as a page of the same site does, and keeps what was sent and answered.

import { csrfToken } from "./base/cookies.js";

const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);
const CSRF_HEADER = "X-CSRF-Token";
const MAX_FOLLOWED_LENGTH = 10000;
const SESSION_OVER = "auth.token_invalid";
const SHOWN_HEADERS = ["content-type", "cache-control", "retry-after", "allow", "x-request-id"];

// The CSRF token of a session that is known to be over.
let endedToken = "";

// This page is …/docs; everything it speaks to is beside it.
export const base = new URL("./", document.baseURI);

// Whether there is a session, as far as a script can tell: the CSRF cookie comes and goes with it
// here, and stays when it is ended elsewhere.
export function isSignedIn() {
  return csrfToken() !== "" && csrfToken() !== endedToken;
}

// The headers a browser must add to a request that a cookie authenticates.
export function sourceHeaders(method) {
  const token = SAFE_METHODS.has(method.toUpperCase()) ? "" : csrfToken();
  return token ? { [CSRF_HEADER]: token } : {};
}

// What `send` would send now.
export function prepared({ method, path, body }) {
  const headers = sourceHeaders(method);
  if (body !== undefined) headers["Content-Type"] = "application/json";
  return { method, url: new URL(path, base), headers, body };
}

// Returns { request, answer }; `answer` is { failure } when no answer came.
export async function send(call) {
  const request = prepared(call);
  const answer = await exchange(request);
  announce();
  return { request, answer };
}

// The addresses that the site is set to have; none while that is not known.
export async function siteOrigins() {
  const request = prepared({ method: "GET", path: "public/frontend-config" });
  const answer = await exchange({ ...request, cache: "no-cache" });
  return answer.ok ? answer.json.data.branding.site_urls : [];
}

// A picture that the page's own routes draw for it; null when there is none.
export async function picture(call) {
  try {
    const response = await asked(prepared(call));
    return response.ok ? await response.blob() : null;
  } catch {
    return null;
  }
}

// Tells the page that a request may have changed who is signed in.
export function announce() {
  document.dispatchEvent(new Event("exchange"));
}

// Like `send`, for an answer that goes on: `arrived(exchange, text)` is called with its head and then
// with every piece. Aborting `signal` ends it.
export async function follow(call, signal, arrived) {
  const request = prepared(call);
  let answer;
  try {
    const began = performance.now();
    const response = await asked(request, signal);
    answer = { ...head(response, began), text: "" };
    arrived({ request, answer }, "");
    const pieces = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let piece = await pieces.read(); !piece.done; piece = await pieces.read()) {
      answer.text = (answer.text + piece.value).slice(-MAX_FOLLOWED_LENGTH);
      arrived({ request, answer }, piece.value);
    }
    Object.assign(answer, parsed(answer.text));
  } catch (error) {
    answer = { ok: false, failure: String(error.message || error) };
  }
  announce();
  return { request, answer };
}

async function exchange(request) {
  const began = performance.now();
  try {
    const response = await asked(request);
    const text = await response.text();
    const answer = { ...head(response, began), ...parsed(text) };
    // Elsewhere the code may speak of a flow.
    if (request.url.pathname.endsWith("/auth/me") && answer.json?.code === SESSION_OVER) endedToken = csrfToken();
    return answer;
  } catch (error) {
    return { ok: false, failure: String(error.message || error) };
  }
}

function asked({ method, url, headers, body, cache }, signal) {
  return fetch(url, {
    method,
    cache,
    headers,
    signal,
    body: body === undefined ? undefined : JSON.stringify(body),
    credentials: "same-origin",
  });
}

function head(response, began) {
  return {
    ok: response.ok,
    status: response.status,
    statusText: response.statusText,
    headers: SHOWN_HEADERS.filter((name) => response.headers.has(name)).map((name) => [
      name,
      response.headers.get(name),
    ]),
    milliseconds: Math.round(performance.now() - began),
  };
}

function parsed(text) {
  try {
    return { text, json: JSON.parse(text) };
  } catch {
    return { text, json: undefined };
  }
}
