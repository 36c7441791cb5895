// @ts-check
// How somebody signs in: address, password, passkeys, second factor.

import { call } from "../base/api.js";
import { byId, el, replace } from "../base/dom.js";
import { load } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { showVerification } from "../base/verification.js";
import { open } from "../console/open.js";
import { listBrowsers, showBrowsers } from "./browsers.js";
import { nameIsNew, showEmail } from "./email.js";
import { showPasskeys } from "./passkeys.js";
import { showPassword } from "./password.js";
import { showTwoStep } from "./two_step.js";

open(async (me) => {
  const address = new URLSearchParams(window.location.search);
  showVerification(address, { own: { "register-activated": "email.is_confirmed" } });
  if (address.get("contact_verification") === "email-changed") nameIsNew();
  const [ways, passkeys, factors, browsers] = await load(() =>
    orSignIn(
      Promise.all([
        call("get", "/auth/confirmation"),
        call("get", "/auth/passkeys"),
        call("get", "/auth/mfa"),
        listBrowsers(),
      ]),
    ),
  );
  const [email, password, keys, twoStep] = [el("div"), el("div"), el("div"), el("div")];
  const trusted = el("div");
  showEmail(email, me);
  showPassword(password, me, ways.methods.includes("password"));
  showPasskeys(keys, passkeys);
  showTwoStep(twoStep, factors, me.username);
  showBrowsers(trusted, browsers);
  // A change of the second step ends the trust.
  twoStep.addEventListener("changed", async () =>
    showBrowsers(trusted, await orSignIn(listBrowsers())),
  );
  const shown = [password, keys, twoStep, trusted].filter((part) => part.firstChild);
  replace(byId("content"), email, ...shown);
});
