// @ts-check
// What was changed and is not saved yet. All of it is saved at once, or nothing.

import { call, Refusal } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { confirmed } from "../base/dialog.js";
import { el } from "../base/dom.js";
import { asSaid, t } from "../base/i18n.js";
import { showNotice } from "../base/problem.js";
import { orSignIn } from "../base/session.js";
import { readAll } from "./stored_settings.js";

/** @import { Body } from "../../types" */
/** @import { Setting } from "./stored_settings.js" */
/** @typedef {string | string[]} Value */
/** @typedef {{ key: string, problem: string }} Problem */

const NEVER = "1970-01-01T00:00:00";
/** The tab with the look of these pages. */
const LOOK = "pages";

/** @type {Setting[]} */
export let settings = [];
/** By key; null returns to the default. @type {Map<string, Value | null>} */
export const drafts = new Map();

/** Reads all settings anew; drafts stay. */
export async function read() {
  settings = await orSignIn(readAll());
}

/**
 * Keeps what was changed, unless it is as it is saved. Returns whether there is a draft.
 * @param {Setting} setting
 * @param {Value | null} value
 */
export function change(setting, value) {
  const isSame =
    value !== null &&
    !setting.is_sensitive &&
    JSON.stringify(value) === JSON.stringify(setting.value);
  const isNothing = (setting.is_sensitive && value === "") || (value === null && !setting.is_set);
  if (isSame || isNothing) drafts.delete(setting.key);
  else drafts.set(setting.key, value);
  return drafts.has(setting.key);
}

/**
 * Saves all drafts. Returns what is wrong with them, when nothing is saved; otherwise which of them
 * were saved, and what was changed with them. Null if somebody said no, or has to look again.
 * @param {() => void} changed called when the settings are read anew
 * @returns {Promise<{ problems: Problem[], keys: string[], others: string[] } | null>}
 */
export async function save(changed) {
  const sent = [...drafts];
  const keys = sent.map(([key]) => key);
  /** @type {Record<string, Value>} */
  const values = {};
  for (const [key, value] of sent) if (value !== null) values[key] = value;
  const unset = sent.filter(([, value]) => value === null).map(([key]) => key);
  const draft = { values, unset };
  const { problems } = await orSignIn(call("post", "/admin/config/validate", { body: draft }));
  if (problems.length > 0) {
    await read(); // what somebody else has changed meanwhile may be why
    changed();
    return { problems, keys, others: [] };
  }
  const body = { ...draft, expected_updated_at: lastChange(keys) };
  const done = await asOwner(t("settings.why"), () => orSignIn(patched(body, changed)));
  if (!done) return null;
  for (const [key, value] of sent) if (drafts.get(key) === value) drafts.delete(key);
  await read();
  changed();
  return { problems, keys, others: done.also_changed };
}

/**
 * Whether pages have shown what one of these settings was before.
 * @param {string[]} keys
 */
export function haveShown(keys) {
  return settings.some(
    ({ key, tab, invalidates }) =>
      keys.includes(key) && (tab === LOOK || invalidates.includes("frontend_config")),
  );
}

/**
 * When one of these settings was last changed, as far as this page knows.
 * @param {string[]} keys
 */
function lastChange(keys) {
  // Without the Z, since a fraction of a second comes before it; a Date would cut that short.
  const times = settings.flatMap(({ key, updated_at: at }) =>
    at && keys.includes(key) ? [at.slice(0, -1)] : [],
  );
  return `${times.sort().at(-1) ?? NEVER}Z`;
}

/**
 * Saves; what would lock the administrator out is saved only after a second question, and nothing
 * if somebody else has changed the same: null.
 * @param {Required<Body<"patch", "/admin/config">>} body
 * @param {() => void} changed
 */
async function patched(body, changed) {
  try {
    return await call("patch", "/admin/config", { body });
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== "conflict") throw error;
    settings = await readAll();
    if (lastChange([...Object.keys(body.values), ...body.unset]) !== body.expected_updated_at) {
      changed();
      showNotice(t("meanwhile.kept"), { kind: "warn" });
      return null;
    }
    const isForced = await confirmed({
      title: t("settings.locks_out"),
      text: el("p", {}, asSaid(error.msg)),
      verb: t("settings.save_anyway"),
    });
    if (!isForced) throw error;
    return call("patch", "/admin/config", { body, query: { force: true } });
  }
}
