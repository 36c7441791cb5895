// @ts-check
// How somebody signs in: address, password, passkeys, second factor.

import { call } from "../base/api.js";
import { byId, el, replace } from "../base/dom.js";
import { load } from "../base/retry.js";
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
  const [ways, passkeys, factors] = await load(() =>
    orSignIn(
      Promise.all([
        call("get", "/auth/confirmation"),
        call("get", "/auth/passkeys"),
        call("get", "/auth/mfa"),
      ]),
    ),
  );
  const [email, password, keys, twoStep] = [el("div"), el("div"), el("div"), el("div")];
  showEmail(email, me);
  showPassword(password, me, ways.methods.includes("password"));
  showPasskeys(keys, passkeys);
  showTwoStep(twoStep, factors, me.username);
  replace(byId("content"), email, password.firstChild && password, keys, twoStep);
});
