// @ts-check
// The tokens that the account has given to programs: made, renamed, revoked.

import { call } from "../base/api.js";
import { confirmed, formDialog } from "../base/dialog.js";
import { byId, el, replace } from "../base/dom.js";
import { field, textInput } from "../base/form.js";
import { t } from "../base/i18n.js";
import { showNotice, showProblem } from "../base/problem.js";
import { load } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { actButton, button, warnOfLoss } from "../console/fields.js";
import { open } from "../console/open.js";
import { empty } from "../console/panel.js";
import { table } from "../console/table.js";
import { toast } from "../console/toast.js";
import { endButton, isExpired, ordered, tokenColumns } from "../console/tokens.js";
import { askForToken, NAME_LENGTH } from "./new_token.js";

/** @typedef {import("../console/tokens.js").Token} Token */
/** @typedef {import("../console/open.js").Me} Me */

const MOST = 50; // so does the service

open(show);

/** @param {Me} me */
async function show(me) {
  draw(me, await load(() => orSignIn(call("get", "/auth/tokens"))));
}

/**
 * Shows them as they are now, the focus on what was changed, or else on the title.
 * @param {Me} me
 * @param {string} [id] of the control
 */
async function again(me, id = "title") {
  await show(me);
  (document.getElementById(id) ?? byId("title")).focus();
}

/**
 * @param {Me} me
 * @param {Token[]} tokens
 */
function draw(me, tokens) {
  const isOff = byId("main").dataset.tokenDays === undefined;
  const isFull = tokens.filter((one) => !isExpired(one)).length >= MOST;
  const make = () =>
    !isOff &&
    !isFull &&
    button(t("tokens.new"), {
      class: "primary",
      click: () => askForToken(me, (id) => again(me, renameId(id))),
    });
  replace(
    byId("page-actions"),
    tokens.length > 0 && make(),
    tokens.length > 1 &&
      actButton(t("tokens.end_all"), { class: "danger-line" }, () => removeAll(me)),
  );
  replace(
    byId("content"),
    isOff && el("p", { class: "note warn" }, t("tokens.off")),
    isFull && el("p", { class: "note warn" }, t("tokens.full", { most: MOST })),
    tokens.length > 0
      ? tokenTable(me, tokens)
      : !isOff && empty(t("tokens.empty"), t("tokens.empty_text"), make()),
  );
}

/**
 * @param {Me} me
 * @param {Token[]} tokens
 */
function tokenTable(me, tokens) {
  const manage = {
    label: t("tokens.manage"),
    kind: /** @type {const} */ ("actions"),
    cell: (/** @type {Token} */ one) => [
      button(t("tokens.rename"), {
        class: "link",
        id: renameId(one.id),
        "aria-label": `${t("tokens.rename")}: ${one.name}`,
        click: () => rename(me, one),
      }),
      endButton(one, {
        text: t("tokens.end_text"),
        end: () => call("delete", "/auth/tokens/{id}", { path: { id: one.id } }),
        then: () => again(me),
        fail: (error) => failed(me, error),
      }),
    ],
  };
  const columns = [...tokenColumns(me.role), manage];
  return el("div", { class: "tokens" }, table(t("tokens.title"), columns, ordered(tokens)));
}

/** @param {number} id */
function renameId(id) {
  return `rename-token-${id}`;
}

/**
 * @param {Me} me
 * @param {Token} token
 */
function rename(me, { id, name: before }) {
  const name = textInput("name", {
    id: "token-name",
    value: before,
    required: true,
    maxlength: NAME_LENGTH,
  });
  const close = formDialog(t("tokens.rename"), t("save"), [field(t("tokens.name"), name)], {
    fields: { conflict: "name", bad_request: "name" },
    async submit(values) {
      const body = { name: values.name ?? "" };
      await orSignIn(call("patch", "/auth/tokens/{id}", { path: { id }, body }));
      close();
      toast(t("saved"));
      await again(me, renameId(id)).catch(showProblem);
    },
    taken(refusal) {
      if (refusal.code !== "not_found") return false;
      close();
      failed(me, refusal);
      return true;
    },
  });
  warnOfLoss(/** @type {HTMLFormElement} */ (name.form));
  name.select();
}

/** @param {Me} me */
async function removeAll(me) {
  const isWanted = await confirmed({
    title: t("tokens.end_all_title"),
    text: t("tokens.end_all_text"),
    verb: t("tokens.end_all"),
  });
  if (!isWanted) return;
  const { removed } = await orSignIn(call("delete", "/auth/tokens"));
  toast(t("tokens.all_ended", { count: removed }));
  await again(me);
}

/**
 * One that is gone is shown no more.
 * @param {Me} me
 * @param {unknown} error
 */
async function failed(me, error) {
  const { code } = /** @type {{ code?: string }} */ (error);
  if (code !== "not_found") return showProblem(error);
  await again(me).catch(showProblem);
  showNotice(t("list.gone"));
}
