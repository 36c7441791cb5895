// A sign-in that leaves this page for a provider: what is known of it when the browser is back.

import { isSignedIn } from "../api.js";

const STARTED = "external-sign-in";
// Any link can lead here, and what it says is not to be the words of this page.
const CODE = /^[a-z0-9_.]{1,64}$/;

export function setOut(provider) {
  window.sessionStorage.setItem(STARTED, provider);
}

// Returns { text, isDone }, or null when nobody was on the way; asked a second time it is null, too.
export function comeBack() {
  const provider = window.sessionStorage.getItem(STARTED);
  window.sessionStorage.removeItem(STARTED);
  const query = new URLSearchParams(window.location.search);
  if (query.get("external_auth") === "error") {
    const code = query.get("code") || "";
    return { text: `The sign-in was refused with ${CODE.test(code) ? code : "no code"}.`, isDone: false };
  }
  if (!provider) return null;
  return isSignedIn()
    ? { text: `Back from ${provider}, and signed in.`, isDone: true }
    : { text: `The sign-in with ${provider} was started, but nobody is signed in.`, isDone: false };
}
