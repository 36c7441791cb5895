// @ts-check
// Pages of signed-in accounts: who it is, and what happens when the session ends.

import { call, logOut, meanFor, Refusal } from "./api.js";
import { csrfToken, forget } from "./kept.js";
import { leaveFor } from "./page.js";
import { signInPath } from "./return_path.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/auth/me">} Me */

const channel = openChannel();
const SIGNED_OUT = "signed-out";
const SIGNED_OUT_PATH = "/login?signed_out=1";

/** Somebody signs out: answers that are still on their way lead nowhere any more. */
let isLeaving = false;

// Null in browsers that keep nothing for this site: its tabs then learn of each other by refusals.
function openChannel() {
  try {
    return new BroadcastChannel("gatehouse");
  } catch {
    return null;
  }
}

/**
 * Returns who is signed in; leads everybody else to the page that is theirs, and does not return.
 * @returns {Promise<Me>}
 * @throws {Refusal}
 */
export async function signedIn() {
  if (!csrfToken()) return /** @type {never} */ (await leaveFor(signInPath()));
  const me = await orSignIn(call("get", "/auth/me"));
  if (me.must_change_password && hasPasswords())
    return /** @type {never} */ (await leaveFor("/force-password-change"));
  meanFor(me.id);
  tellWhoIsHere(me.id);
  channel?.addEventListener("message", ({ data }) => {
    if (data === SIGNED_OUT) {
      isLeaving = true;
      forget();
      leaveFor(SIGNED_OUT_PATH);
    } else if (data !== me.id) {
      // What is typed here is this account's, and must not become the other's.
      window.location.reload();
    }
  });
  return me;
}

/**
 * Asks before the page is left while something would be lost; not once the session has ended, when
 * nothing of the account may stay in sight.
 * @param {() => boolean} isNeeded
 */
export function askBeforeLeaving(isNeeded) {
  window.addEventListener(
    "beforeunload",
    (event) => !isLeaving && isNeeded() && event.preventDefault(),
  );
}

/** Pages of another account in other tabs then load again. */
export function tellWhoIsHere(/** @type {number} */ id) {
  channel?.postMessage(id);
}

/** Without them nobody can be made to change theirs. */
function hasPasswords() {
  return document.documentElement.dataset.noPasswords === undefined;
}

/**
 * Returns who is signed in, or null.
 * @returns {Promise<Me | null>}
 * @throws {Refusal}
 */
export async function whoIsSignedIn() {
  if (!csrfToken()) return null;
  try {
    const me = await call("get", "/auth/me");
    meanFor(me.id);
    return me;
  } catch (error) {
    if (error instanceof Refusal && (error.isSignedOut || error.status === 403)) return null;
    throw error;
  }
}

/**
 * Waits for an answer; where the session is over, goes to the sign-in page and back here. A refused
 * change stays on the page, with what was typed.
 * @template T
 * @param {Promise<T>} answer
 * @returns {Promise<T>}
 */
export async function orSignIn(answer) {
  try {
    return await answer;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    if (error.isSignedOut && !error.isChange) {
      return isLeaving
        ? new Promise(() => undefined)
        : /** @type {never} */ (await leaveFor(signInPath()));
    }
    if (error.code === "auth.password_change_required") {
      return /** @type {never} */ (await leaveFor("/force-password-change"));
    }
    if (error.code === "auth.admin_required") {
      window.location.reload(); // the page then says so
      return new Promise(() => undefined);
    }
    throw error;
  }
}

/** Ends the session in every tab, and leaves for the sign-in page. */
export async function signOut() {
  isLeaving = true;
  await logOut().catch((error) => {
    isLeaving = false;
    throw error;
  });
  tellSignedOut();
  await leaveFor(SIGNED_OUT_PATH);
}

/** Other tabs then show nothing of the account any more. */
export function tellSignedOut() {
  isLeaving = true;
  forget();
  channel?.postMessage(SIGNED_OUT);
}
