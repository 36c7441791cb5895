// @ts-check
// A dialog that invites an address, and the link that comes of it.

import { call } from "../base/api.js";
import { formDialog } from "../base/dialog.js";
import { el } from "../base/dom.js";
import { field, textInput } from "../base/form.js";
import { t } from "../base/i18n.js";
import { CHECKS } from "../base/rules.js";
import { orSignIn } from "../base/session.js";
import { warnOfLoss } from "../console/fields.js";
import { showOnce } from "../console/secret.js";

const DAY_SECONDS = 86_400;
const MAX_DAYS = 365;

/**
 * @param {() => unknown} done called when somebody was invited and has kept the link
 */
export function askForAddress(done) {
  const usual = el("span", {}, "\u00a0");
  const path = { key: "auth_user_invitation_ttl_secs" };
  call("get", "/admin/config/{key}", { path })
    .then(({ value }) => {
      const days = Math.round((100 * Number(value)) / DAY_SECONDS) / 100;
      usual.textContent = t("invitations.days_hint", { count: days });
    })
    .catch(() => undefined); // it can be left empty all the same
  const address = textInput("email", {
    id: "invite-email",
    type: "email",
    required: true,
    autocapitalize: "none",
  });
  const days = textInput("days", {
    id: "invite-days",
    type: "number",
    min: 1,
    max: MAX_DAYS,
    inputmode: "numeric",
  });
  const close = formDialog(
    t("invitations.new"),
    t("invitations.send"),
    [field(t("users.email"), address), field(t("invitations.days"), days, { hint: usual })],
    {
      checks: {
        email: CHECKS.email ?? String,
        days: (value) =>
          value && !days.checkValidity() ? t("invitations.days_wrong", { most: MAX_DAYS }) : "",
      },
      fields: {
        "auth.email_exists": "email",
        "auth.email_blocked": "email",
        "auth.email_not_allowlisted": "email",
      },
      async submit({ email = "", days: wanted }) {
        const ttl = wanted ? { ttl_secs: Math.round(Number(wanted) * DAY_SECONDS) } : {};
        const made = await orSignIn(
          call("post", "/admin/users/invitations", { body: { email: email.trim(), ...ttl } }),
        );
        close();
        await showLink(made);
        await done();
      },
    },
  );
  warnOfLoss(/** @type {HTMLFormElement} */ (address.form));
}

/** @param {{ email: string, invitation_url: string }} made */
export function showLink({ email, invitation_url: url }) {
  return showOnce({
    title: t("invitations.link"),
    text: t("invitations.link_text", { email }),
    lines: [url],
    file: "invitation.txt",
  });
}
