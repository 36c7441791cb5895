// @ts-check
// Tokens of programs, as their owners and administrators see them.

import { confirmed } from "../base/dialog.js";
import { el } from "../base/dom.js";
import { ago, day, moment } from "../base/format.js";
import { hasText, t } from "../base/i18n.js";
import { orSignIn } from "../base/session.js";
import { actButton } from "./fields.js";
import { badge } from "./panel.js";
import { toast } from "./toast.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/auth/tokens">[number]} Token */

/**
 * Whether it opens nothing any more; it stays listed for some weeks.
 * @param {Token} token
 */
export function isExpired({ expires_at: at }) {
  return at !== null && new Date(at) <= new Date();
}

/**
 * Those that open something first.
 * @param {Token[]} tokens
 */
export function ordered(tokens) {
  return [...tokens.filter((one) => !isExpired(one)), ...tokens.filter((one) => isExpired(one))];
}

/**
 * What a token may do, in words; a scope that this version does not know keeps its name.
 * @param {string} scope
 */
export function scopeText(scope) {
  return hasText(`scope.${scope}`) ? t(`scope.${scope}`) : scope;
}

/**
 * All that there is to know of one.
 * @param {string} role of the owner, without which scopes of the administration open nothing
 * @returns {import("./table.js").Column<Token>[]}
 */
export function tokenColumns(role) {
  const scopeLine = (/** @type {string} */ scope) => {
    const isAsleep = scope.startsWith("admin") && role !== "admin";
    const state = isAsleep && badge(t("tokens.asleep"));
    return el("span", { class: "scope-line" }, scopeText(scope), " ", state);
  };
  return [
    { label: t("tokens.name"), cell: nameCell },
    { label: t("tokens.scopes"), cell: ({ scopes }) => scopes.map(scopeLine) },
    { label: t("tokens.used"), cell: usedCell },
    {
      label: t("tokens.expires"),
      cell: ({ expires_at: at }) => (at ? dated(at, day(at)) : t("never")),
    },
  ];
}

/**
 * What takes one away; asks before, unless it opens nothing any more.
 * @param {Token} token
 * @param {object} how
 * @param {string} how.text what that means
 * @param {() => Promise<unknown>} how.end
 * @param {() => Promise<void>} how.then
 * @param {(error: unknown) => void} [how.fail]
 */
export function endButton(token, { text, end, then, fail }) {
  const { name } = token;
  const isOver = isExpired(token);
  const verb = t(isOver ? "remove" : "tokens.end");
  const question = { title: t("tokens.end_title", { name }), text, verb: t("tokens.end_verb") };
  return actButton(
    verb,
    { class: "link", "aria-label": `${verb}: ${name}` },
    async () => {
      if (!isOver && !(await confirmed(question))) return;
      await orSignIn(end());
      toast(t(isOver ? "tokens.removed" : "tokens.ended"));
      await then();
    },
    { fail },
  );
}

/** @param {Token} token */
function nameCell(token) {
  return [
    el("span", {}, token.name),
    " ",
    isExpired(token) && badge(t("tokens.expired"), "warn"),
    el("span", { class: "hint mono" }, `${token.prefix}…`),
    el("span", { class: "hint" }, t("tokens.created", { date: day(token.created_at) })),
  ];
}

/** @param {Token} token */
function usedCell({ last_used_at: at, last_used_ip: address }) {
  if (!at) return t("never");
  return [dated(at, ago(at)), address && el("span", { class: "hint mono" }, address)];
}

/**
 * @param {string} at
 * @param {string} text
 */
function dated(at, text) {
  return el("time", { datetime: at, title: moment(at) }, text);
}
