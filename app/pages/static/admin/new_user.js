// @ts-check
// A dialog for a new account.

import { call } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { formDialog } from "../base/dialog.js";
import { input } from "../base/dom.js";
import { field, textInput } from "../base/form.js";
import { t } from "../base/i18n.js";
import { leaveFor } from "../base/page.js";
import { CHECKS } from "../base/rules.js";
import { orSignIn } from "../base/session.js";
import { checkbox, passwordField, select, warnOfLoss } from "../console/fields.js";
import { showOnce } from "../console/secret.js";

const FIELDS = {
  "auth.username_exists": "username",
  "auth.email_exists": "email",
  "auth.email_blocked": "email",
  "auth.email_not_allowlisted": "email",
};

/** @param {[string, string][]} groups */
export function askForUser(groups) {
  const close = formDialog(t("users.new"), t("new_user.submit"), fieldsOf(groups), {
    checks: {
      username: CHECKS.username ?? String,
      email: CHECKS.email ?? String,
      password: (value) => (value ? (CHECKS.password?.(value) ?? "") : ""),
    },
    fields: FIELDS,
    async submit(values) {
      const made = await asOwner(t("new_user.why"), () =>
        orSignIn(call("post", "/admin/users", { body: bodyOf(values) })),
      );
      if (!made) return;
      close();
      if (made.generated_password) await showPassword(made.user.username, made.generated_password);
      await leaveFor(`/admin/users/${made.user.id}`);
    },
  });
  warnOfLoss(/** @type {HTMLFormElement} */ (input("new-username").form));
}

/** @param {[string, string][]} groups */
function fieldsOf(groups) {
  const username = textInput("username", {
    id: "new-username",
    required: true,
    autocapitalize: "none",
  });
  const email = textInput("email", {
    id: "new-email",
    type: "email",
    required: true,
    autocapitalize: "none",
  });
  const chosen = passwordField(
    "password",
    t("new_user.password"),
    "new-password",
    t("new_user.password_hint"),
  );
  const secret = /** @type {HTMLInputElement} */ (chosen.querySelector("input"));
  secret.required = false;
  /** @type {[string, string][]} */
  const roles = [
    ["user", t("role.user")],
    ["admin", t("role.admin")],
  ];
  return [
    field(t("new_user.username"), username),
    field(t("new_user.email"), email, { hint: t("new_user.email_hint") }),
    chosen,
    checkbox("must_change_password", t("new_user.must_change"), { checked: true }),
    field(t("users.role"), select("role", roles, { id: "new-role" })),
    groups.length > 1 &&
      field(t("users.group"), select("policy_group_id", groups, { id: "new-group" })),
  ];
}

/**
 * @param {string} name
 * @param {string} password
 */
function showPassword(name, password) {
  return showOnce({
    title: t("new_user.password"),
    text: t("new_user.generated", { name }),
    lines: [password],
    file: `password-${name}.txt`,
  });
}

/** @param {Record<string, string>} values */
function bodyOf({
  username = "",
  email = "",
  password,
  must_change_password: mustChange,
  role,
  policy_group_id: group,
}) {
  return {
    username: username.trim(),
    email: email.trim(),
    role: /** @type {"user" | "admin"} */ (role),
    must_change_password: mustChange === "on",
    ...(password ? { password } : {}),
    ...(group ? { policy_group_id: Number(group) } : {}),
  };
}
