// @ts-check
// The tokens that an account has given to programs: looked at and taken away.

import { call } from "../base/api.js";
import { el, replace } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { load } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { panel } from "../console/panel.js";
import { table } from "../console/table.js";
import { endButton, ordered, tokenColumns } from "../console/tokens.js";
import { doer } from "./user_security.js";

/** @typedef {import("../console/tokens.js").Token} Token */
/** @typedef {import("./lookups.js").User} User */
/** @typedef {{ role: string, path: { id: string }, again: () => Promise<void> }} About */

/**
 * @param {HTMLElement} host
 * @param {User} user
 * @returns what reads them again, for the account as it is now
 */
export async function showTokens(host, user) {
  const path = { id: String(user.id) };
  const show = async (/** @type {User} */ { role }) => {
    const tokens = await load(() => orSignIn(call("get", "/admin/users/{id}/tokens", { path })));
    const again = () => show({ ...user, role });
    replace(host, tokensPanel({ role, path, again }, tokens));
  };
  await show(user);
  return show;
}

/**
 * @param {About} about
 * @param {Token[]} tokens
 */
function tokensPanel(about, tokens) {
  const { role, path, again } = about;
  const all = doer("tokens.end_all", () => call("delete", "/admin/users/{id}/tokens", { path }), {
    ask: "user.tokens_end_text",
    done: "user.tokens_ended",
    then: again,
  });
  const end = {
    label: t("tokens.manage"),
    kind: /** @type {const} */ ("actions"),
    cell: (/** @type {Token} */ one) =>
      endButton(one, {
        text: t("user.token_end_text"),
        end: () =>
          call("delete", "/admin/users/{id}/tokens/{token_id}", {
            path: { ...path, token_id: one.id },
          }),
        then: again,
      }),
  };
  return panel(
    "tokens",
    t("tokens.title"),
    { lead: t("user.tokens_lead"), actions: tokens.length > 0 ? [all] : [] },
    tokens.length > 0
      ? table(t("tokens.title"), [...tokenColumns(role), end], ordered(tokens))
      : el("p", { class: "hint" }, t("user.no_tokens")),
  );
}
