// @ts-check
// Dialogs that set the password and the address of an account.

import { call } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { formDialog } from "../base/dialog.js";
import { el } from "../base/dom.js";
import { field, textInput } from "../base/form.js";
import { t } from "../base/i18n.js";
import { CHECKS } from "../base/rules.js";
import { orSignIn } from "../base/session.js";
import { checkbox, passwordField } from "../console/fields.js";
import { toast } from "../console/toast.js";

/** @typedef {import("./lookups.js").User} User */

/**
 * @param {User} user
 * @param {() => Promise<void>} done
 */
export function askForPassword({ id, username }, done) {
  const ticked = checkbox("must_change_password", t("new_user.must_change"), { checked: true });
  askFor(
    t("user.set_password"),
    [
      el("p", { class: "lead" }, t("user.set_password_text", { name: username })),
      passwordField("password", t("new_user.password"), "new-password"),
      ticked,
    ],
    { password: CHECKS.password ?? String },
    async ({ password = "", must_change_password: mustChange }) => {
      const body = { password, must_change_password: mustChange === "on" };
      return orSignIn(
        call("put", "/admin/users/{id}/password", { path: { id: String(id) }, body }),
      );
    },
    done,
  );
}

/**
 * @param {User} user
 * @param {(user: User) => void} changed
 */
export function askForEmail({ id, email: old }, changed) {
  const ticked = checkbox("verified", t("user.email_counts"), {
    hint: t("user.email_counts_hint"),
  });
  askFor(
    t("user.change_email"),
    [
      field(
        t("users.email"),
        textInput("email", {
          id: "change-email",
          type: "email",
          value: old,
          required: true,
          autocapitalize: "none",
        }),
      ),
      ticked,
    ],
    { email: CHECKS.email ?? String },
    ({ email = "", verified }) =>
      orSignIn(
        call("put", "/admin/users/{id}/email", {
          path: { id: String(id) },
          body: { email: email.trim(), verified: verified === "on" },
        }),
      ),
    changed,
  );
}

/**
 * @template [T=never]
 * @param {string} title
 * @param {HTMLElement[]} content
 * @param {Record<string, (value: string) => string>} checks
 * @param {(values: Record<string, string>) => Promise<T>} work
 * @param {(answer: T) => unknown} done
 */
function askFor(title, content, checks, work, done) {
  const close = formDialog(title, t("save"), content, {
    busy: t("saving"),
    checks,
    fields: {
      "auth.email_exists": "email",
      "auth.email_blocked": "email",
      "auth.email_not_allowlisted": "email",
    },
    async submit(values) {
      const answer = await asOwner(t("user.why"), () => work(values));
      if (answer === null) return;
      close();
      toast(t("saved"));
      await done(answer);
    },
  });
}
