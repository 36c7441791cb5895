// Shows a request and its answer the way HTTP writes them.

import { el, replace } from "./base/dom.js";

const MAX_TEXT_LENGTH = 20000;
const SECRET = /password|secret|token|code$/i;
const TOKENS = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|\b(true|false|null)\b/g;

// A part is { title, request, answer }, or { title, note } for what happens without a request; only
// what has several parts gives them titles.
export function showExchange(host, parts) {
  replace(host, parts.flatMap(part));
}

function part({ title, note, request, answer }) {
  const heading = title && el("h4", { class: "part" }, title);
  if (note) return [heading, el("p", { class: "quiet" }, note)];
  return [heading, requestBlock(request), answerBlock(answer)];
}

export function outcome(answer) {
  if (!answer) return "";
  return answer.failure ? "no answer" : `${answer.status} · ${answer.milliseconds} ms`;
}

function requestBlock({ method, url, headers, body }) {
  const lines = [
    el("span", { class: "http-start" }, `${method} ${url.pathname}${url.search}`),
    ...Object.entries(headers).map(([name, value]) => header(name, shortened(name, value))),
  ];
  return block("Request", null, lines, body === undefined ? null : coloured(masked(body)));
}

function answerBlock(answer) {
  if (!answer) return block("Answer", null, [el("span", { class: "quiet" }, "Not sent yet.")]);
  if (answer.failure) {
    return block("Answer", pill("no answer", "bad"), [el("span", {}, answer.failure)]);
  }
  const lines = answer.headers.map(([name, value]) => header(name, value));
  const content =
    answer.json === undefined ? answer.text.slice(0, MAX_TEXT_LENGTH) : coloured(answer.json);
  const status = pill(`${answer.status} ${answer.statusText}`, answer.ok ? "good" : "bad");
  return block("Answer", status, lines, content);
}

function block(title, mark, lines, content = null) {
  const head = lines.flatMap((line) => [line, "\n"]);
  return el(
    "figure",
    { class: "http" },
    el("figcaption", {}, title, mark),
    el("pre", { tabindex: "0", "aria-label": title }, head, content ? ["\n", content] : null),
  );
}

function header(name, value) {
  return el("span", {}, el("span", { class: "http-name" }, `${name}: `), value);
}

export function pill(text, kind) {
  return el("span", { class: `pill pill-${kind}` }, text);
}

function shortened(name, value) {
  return SECRET.test(name) && value.length > 12 ? `${value.slice(0, 8)}…` : value;
}

function masked(body) {
  const hide = ([name, value]) => [name, SECRET.test(name) && value ? "••••••••" : value];
  return Object.fromEntries(Object.entries(body).map(hide));
}

function coloured(value) {
  const text = JSON.stringify(value, null, 2);
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(TOKENS)) {
    const [, string, colon, number] = match;
    const kind = string ? (colon ? "key" : "string") : number ? "number" : "literal";
    const length = (string || match[0]).length;
    parts.push(text.slice(end, match.index));
    parts.push(el("span", { class: `json-${kind}` }, match[0].slice(0, length)));
    end = match.index + length;
  }
  return el("code", {}, [...parts, text.slice(end)]);
}
