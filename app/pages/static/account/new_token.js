// @ts-check
// A new token: what it is called, what it may do, and until when; its secret is shown once.

import { call } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { formDialog } from "../base/dialog.js";
import { byId } from "../base/dom.js";
import { field, textInput } from "../base/form.js";
import { day } from "../base/format.js";
import { t } from "../base/i18n.js";
import { orSignIn } from "../base/session.js";
import { warnOfLoss } from "../console/fields.js";
import { showOnce } from "../console/secret.js";
import { scopeText } from "../console/tokens.js";
import { endFields } from "./token_end.js";
import { scopeFields } from "./token_scopes.js";

/** @import { Body, Data } from "../../types" */
/** @typedef {import("../console/open.js").Me} Me */

export const NAME_LENGTH = 64;

/**
 * @param {Me} me
 * @param {(id: number) => Promise<void>} made is called when the secret has been shown
 */
export function askForToken(me, made) {
  const name = textInput("name", { id: "token-name", required: true, maxlength: NAME_LENGTH });
  const scopes = scopeFields(me.role === "admin");
  const end = endFields(Number(byId("main").dataset.tokenDays));
  const close = formDialog(
    t("tokens.new"),
    t("tokens.make"),
    [field(t("tokens.name"), name, { hint: t("tokens.name_hint") }), scopes.box, ...end.fields],
    {
      fields: { conflict: "name" },
      checks: { end_date: end.check },
      async submit(values) {
        const chosen = scopes.chosen();
        if (chosen.length === 0) return scopes.complain();
        const done = await make(values.name ?? "", chosen, end.days());
        if (!done) return;
        close();
        await showSecret(me, done);
        await made(done.info.id);
      },
    },
  );
  warnOfLoss(/** @type {HTMLFormElement} */ (name.form));
}

/**
 * @param {string} name
 * @param {string[]} chosen
 * @param {number | null} days
 */
function make(name, chosen, days) {
  const scopes = /** @type {Body<"post", "/auth/tokens">["scopes"]} */ (chosen);
  const body = { name, scopes, expires_in_days: days };
  return asOwner(t("tokens.why"), () => orSignIn(call("post", "/auth/tokens", { body })));
}

/**
 * @param {Me} me
 * @param {Data<"post", "/auth/tokens">} made
 */
function showSecret({ username }, { token, info }) {
  const { name, scopes, expires_at: end } = info;
  return showOnce({
    title: t("tokens.secret", { name }),
    text: t("tokens.secret_text"),
    lines: [token],
    file: "token.txt",
    about: [
      t("two_step.codes_of", {
        site: String(document.documentElement.dataset.site),
        name: username,
      }),
      scopes.map(scopeText).join(", "),
      end ? t("tokens.ends_on", { date: day(end) }) : t("tokens.no_end"),
    ],
    isPrinted: false,
  });
}
