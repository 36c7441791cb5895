// @ts-check
// How somebody signs in: address, password, passkeys, second factor.

import { call } from "../base/api.js";
import { byId, el, replace } from "../base/dom.js";
import { load, onDemand } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { showVerification } from "../base/verification.js";
import { open } from "../console/open.js";
import { nameIsNew, showEmail } from "./email.js";
import { showPasskeys } from "./passkeys.js";
import { showPassword } from "./password.js";
import { showTwoStep } from "./two_step.js";

open(async (me) => {
  const address = new URLSearchParams(window.location.search);
  showVerification(address, { own: { "register-activated": "email.is_confirmed" } });
  if (address.get("contact_verification") === "email-changed") nameIsNew();
  const trusts = byId("main").dataset.trustsBrowsers !== undefined;
  const browsers = trusts ? await onDemand(() => import("./browsers.js")) : null;
  const [ways, passkeys, factors, trusted] = await load(() =>
    orSignIn(
      Promise.all([
        call("get", "/auth/confirmation"),
        call("get", "/auth/passkeys"),
        call("get", "/auth/mfa"),
        browsers?.list() ?? [],
      ]),
    ),
  );
  const [email, password, keys, twoStep] = [el("div"), el("div"), el("div"), el("div")];
  showEmail(email, me);
  showPassword(password, me, ways.methods.includes("password"));
  showPasskeys(keys, passkeys);
  showTwoStep(twoStep, factors, me.username);
  const others = browsers ? [browsers.section(trusted, twoStep)] : [];
  replace(byId("content"), email, password.firstChild && password, keys, twoStep, others);
});
