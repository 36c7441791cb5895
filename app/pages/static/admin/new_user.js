// @ts-check
// A dialog for a new account.

import { call } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { formDialog } from "../base/dialog.js";
import { t } from "../base/i18n.js";
import { leaveFor } from "../base/page.js";
import { CHECKS } from "../base/rules.js";
import { orSignIn } from "../base/session.js";
import { checkbox, field, passwordField, select, textInput } from "../console/fields.js";
import { showOnce } from "../console/secret.js";

const FIELDS = {
  "auth.username_exists": "username",
  "auth.email_exists": "email",
  "auth.email_blocked": "email",
  "auth.email_not_allowlisted": "email",
};

/** @param {[string, string][]} groups */
export function askForUser(groups) {
  const username = textInput("username", {
    id: "new-username",
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
  const change = checkbox("must_change_password", t("new_user.must_change"), { checked: true });
  const close = formDialog(
    t("users.new"),
    t("new_user.submit"),
    [
      field(t("new_user.username"), username),
      field(
        t("new_user.email"),
        textInput("email", {
          id: "new-email",
          type: "email",
          required: true,
          autocapitalize: "none",
        }),
        { hint: t("new_user.email_hint") },
      ),
      chosen,
      change,
      field(
        t("users.role"),
        select(
          "role",
          [
            ["user", t("role.user")],
            ["admin", t("role.admin")],
          ],
          { id: "new-role" },
        ),
      ),
      groups.length > 1 &&
        field(t("users.group"), select("policy_group_id", groups, { id: "new-group" })),
    ],
    {
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
        const { user, generated_password: generated } = made;
        if (generated) {
          const text = t("new_user.generated", { name: user.username });
          await showOnce({
            title: t("new_user.password"),
            text,
            lines: [generated],
            file: `password-${user.username}.txt`,
          });
        }
        await leaveFor(`/admin/users/${user.id}`);
      },
    },
  );
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
