// Second factors: set up an authenticator app, make new recovery codes, see and remove the factors.

import { isSignedIn } from "../api.js";
import { halfway, stepsPanel } from "../steps.js";
import { PROOF, PROOF_HINT } from "./code_field.js";
import { inWords } from "./duration.js";
import { factorTable } from "./factor_table.js";
import { loginStep } from "./login_step.js";
import { recoveryCodes } from "./recovery_codes.js";
import { totpSetup } from "./totp_setup.js";

const steps = [
  {
    ...loginStep,
    id: "factors-login",
    title: "Sign in to manage factors",
    why: "You must be signed in to add a factor to an account or to remove one.",
    isSettled: isSignedIn,
  },
  {
    id: "factors-setup",
    title: "Set up an authenticator app",
    method: "POST",
    path: "/auth/mfa/totp/setup/start",
    route: "/auth/mfa/totp/setup/*",
    why: "The service creates a secret and answers with the link that the app scans. Nothing changes until a code from the app finishes the set-up. From then on, signing in with the password needs such a code, too.",
    action: "Start the set-up",
    explain: ({ expires_in: seconds }) => halfway(`Set up the app, then type its code within ${inWords(seconds)}.`),
    extra: (data, tools) => totpSetup(data, tools, enabled),
    isSettled: (memory) => isSignedIn() && memory.hasFactor,
  },
  {
    id: "factors-codes",
    title: "Make new recovery codes",
    method: "POST",
    path: "/auth/mfa/recovery-codes/regenerate",
    why: "Ten new codes, for when the old ones are used up or lost. The old ones are void from then on. A session alone is not enough: a code proves that it is the owner who asks.",
    action: "Make new codes",
    fields: [
      { name: "code", label: PROOF, autocomplete: "one-time-code", autocapitalize: "off", hint: PROOF_HINT },
    ],
    explain: (codes) => `${codes.length} new codes. The old ones are void.`,
    extra: recoveryCodes,
  },
  {
    id: "factors-list",
    title: "See and remove factors",
    method: "GET",
    path: "/auth/mfa",
    why: "The factors of the account. Removing the app also removes the recovery codes, and the password alone signs in again.",
    action: "List",
    explain: listed,
    extra: factorTable,
  },
];

function enabled({ factor }, memory) {
  memory.hasFactor = true;
  return `“${factor.name}” is a second factor of this account. The next sign-in asks for it.`;
}

function listed({ factors, recovery_codes_remaining: left }, memory) {
  memory.hasFactor = factors.length > 0;
  return memory.hasFactor
    ? `${counted(factors.length, "factor")}, and ${counted(left, "recovery code")} left.`
    : "No second factor: the password alone signs in.";
}

function counted(count, thing) {
  return `${count} ${thing}${count === 1 ? "" : "s"}`;
}

export const secondFactors = {
  id: "second-factors",
  title: "Second factors",
  build: () =>
    stepsPanel({
      id: secondFactors.id,
      title: secondFactors.title,
      lead: "Something besides the password: an authenticator app (TOTP), and recovery codes for the day it is lost.",
      steps,
    }),
};
