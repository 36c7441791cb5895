// Passkeys: make one, sign in with it by a button and by a field's suggestions, and remove it.

import { isSignedIn, siteOrigins } from "../api.js";
import { el, replace } from "../base/dom.js";
import { halfway, stepsPanel } from "../steps.js";
import { Unfinished } from "../unfinished.js";
import * as webauthn from "../webauthn.js";
import { loginStep } from "./login_step.js";
import { passkeyTable } from "./passkey_table.js";

const START = "1. Ask for a challenge";
const BROWSER = "2. In the browser";
const FINISH = "3. Send what the browser made";

const steps = [
  {
    ...loginStep,
    id: "passkey-password",
    title: "Sign in with the password",
    why: "You must be signed in to add a passkey to an account.",
    isSettled: isSignedIn,
  },
  {
    id: "passkey-create",
    title: "Create a passkey",
    method: "POST",
    path: "/auth/passkeys/register/start",
    route: "/auth/passkeys/register/*",
    why: "The browser makes a key pair for this site and keeps the private half; the service gets the public one. Passkeys that the account already has are excluded, so each device takes part once.",
    action: "Create",
    fields: [
      { name: "name", label: "Name", value: "My passkey", autocomplete: "off", hint: "Shown in the list. Up to 128 characters; left empty, it is “Passkey”." },
    ],
    async perform(call, trace) {
      const start = await trace.send(call, START);
      if (!start.answer.ok) return start;
      trace.note(BROWSER, "navigator.credentials.create() asks for a finger, a face or a PIN and makes the key pair.");
      return finish("register", start, webauthn.createPasskey, trace);
    },
    stop: webauthn.stop,
    stopAction: "Stop",
    explain: (data) => `“${data.name}” is a passkey of this account${data.backed_up ? ", synced to your other devices" : ""}.`,
  },
  {
    id: "passkey-login",
    title: "Sign in with a passkey",
    method: "POST",
    path: "/auth/passkeys/login/start",
    route: "/auth/passkeys/login/*",
    why: "No name and no password: the passkey itself tells whose it is. No second factor is required either, since the authenticator has already verified who holds it.",
    action: "Sign in with a passkey",
    body: () => ({}),
    async perform(call, trace) {
      const start = await trace.send(call, START);
      if (!start.answer.ok) return start;
      trace.note(BROWSER, "navigator.credentials.get() lets you choose a passkey, verifies you and signs the challenge.");
      return finish("login", start, webauthn.usePasskey, trace);
    },
    stop: webauthn.stop,
    stopAction: "Stop",
    explain: signedIn,
  },
  {
    id: "passkey-autofill",
    title: "Sign in from a field's suggestions",
    method: "POST",
    path: "/auth/passkeys/login/start",
    route: "/auth/passkeys/login/*",
    why: "What a sign-in form does as soon as it is shown (conditional UI): those who have a passkey pick it where they would type a name, and everybody else sees an ordinary form.",
    action: "Offer passkeys in the field",
    fields: [
      { name: "username", label: "Username or e-mail", autocomplete: "username webauthn", hint: "Not sent: the passkey tells whose it is." },
    ],
    body: () => ({ conditional: true }),
    perform: offerInField,
    stop: webauthn.stop,
    stopAction: "Stop waiting",
    explain: signedIn,
  },
  {
    id: "passkey-list",
    title: "See and remove passkeys",
    method: "GET",
    path: "/auth/passkeys",
    why: "A passkey removed here no longer signs in, but the browser or its password manager still lists it until you delete it there.",
    action: "List",
    explain: (data) => `${data.length} ${data.length === 1 ? "passkey" : "passkeys"}.`,
    extra: passkeyTable,
  },
];

// A challenge lives for minutes and a form may wait for hours, so the challenge is renewed.
async function offerInField(call, trace) {
  if (!(await webauthn.offersAutofill())) {
    throw new Unfinished("This browser does not suggest passkeys in fields; use the step above.");
  }
  for (;;) {
    trace.restart();
    const start = await trace.send(call, START);
    if (!start.answer.ok) return start;
    trace.note(BROWSER, "navigator.credentials.get() with mediation “conditional” waits until you pick a passkey.");
    trace.say("Waiting: click into the field and pick your passkey.");
    const done = await finish("login", start, webauthn.suggestedPasskey, trace);
    if (done) return done;
  }
}

// Runs the browser's part and hands in its credential; null when the browser's part is to be begun
// again.
async function finish(purpose, start, ceremony, trace) {
  const { data } = start.answer.json;
  const credential = await ceremony(data);
  if (credential === null) return null;
  const body = { flow_id: data.flow_id, credential };
  return trace.send({ method: "POST", path: `auth/passkeys/${purpose}/finish`, body }, FINISH);
}

function signedIn(data) {
  return data.status === "authenticated"
    ? "Signed in by passkey, with the same cookies as after a password."
    : halfway("The passkey is right, but the password must be changed before anything else.");
}

// Says what keeps passkeys from working at this address, and where they do.
async function fillIn(notice) {
  const origins = await siteOrigins();
  const isOwn = webauthn.isOneOf(origins);
  const obstacle = webauthn.obstacle() || (isOwn ? "" : `Passkeys of this site do not work at ${window.location.origin}.`);
  const named = webauthn.namedOrigin();
  const ways = isOwn || origins.includes(named) ? [named] : origins;
  notice.hidden = !obstacle;
  replace(notice, obstacle, ways[0] && [" Open this page at ", ...ways.flatMap(link), "."]);
}

function link(origin, index) {
  const href = `${origin}${window.location.pathname}#${passkeys.id}`;
  return [index > 0 && " or ", el("a", { href }, origin)];
}

function build() {
  const notice = el("p", { class: "notice", hidden: true });
  const { id, title } = passkeys;
  const lead = "Signing in without a password (WebAuthn). What the service sends is passed to the browser unchanged, and what the browser makes is sent back unchanged.";
  const panel = stepsPanel({ id, title, lead, steps, notice });
  fillIn(notice);
  // The site's addresses may be set while the page is open; the event does not bubble.
  panel.addEventListener("toggle", () => fillIn(notice), true);
  return panel;
}

export const passkeys = { id: "passkeys", title: "Passkeys", build };
