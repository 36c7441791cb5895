// @ts-check
// The first administrator of an empty installation.

import { call } from "../base/api.js";
import { byId, el } from "../base/dom.js";
import { focusFirst, handle } from "../base/form.js";
import { rich, t } from "../base/i18n.js";
import { leaveFor, note, start } from "../base/page.js";
import { load } from "../base/retry.js";
import { CHECKS } from "../base/rules.js";
import { enter } from "./enter.js";
import { dealtWith, measure } from "./new_account.js";

const STORAGE = "/setup/storage";

/** The set-up learns the site's address here, and passkeys need one with a name. */
function warnOfNumericAddress() {
  const url = new URL(window.location.href);
  if (!/^(127\.|\[::1\])/.test(url.hostname)) return;
  url.hostname = "localhost";
  note("warn", ...rich("setup.numeric", { link: el("a", { href: url.href }, url.origin) }));
}

start(async () => {
  warnOfNumericAddress();
  measure();
  let isSent = false;
  const form = /** @type {HTMLFormElement} */ (byId("account-form"));
  handle(form, {
    busy: t("setup.busy"),
    checks: CHECKS,
    async submit({ username = "", email = "", password = "" }) {
      isSent = true;
      await call("post", "/auth/setup", { body: { username, email, password } });
      await enter(username, password, { outcome: "registered", to: STORAGE });
    },
    taken: (refusal) => dealtWith(refusal, { password: "password", doubt: "doubt.account" }),
    actions: ({ code }) =>
      code === "validation.system_already_initialized"
        ? [el("a", { href: "/login" }, t("to_sign_in"))]
        : [],
  });
  focusFirst(form);
  const { setup_state } = await load(() => call("post", "/auth/check"));
  if (isSent) return undefined; // the answer to the form decides where to go
  if (setup_state === "ready") return leaveFor("/login");
  if (setup_state === "needs_storage") return leaveFor(STORAGE);
  return undefined;
});
