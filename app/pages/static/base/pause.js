// @ts-check
// A button that may be used again after some time, and counts down till then.

import { Refusal } from "./api.js";
import { el, say } from "./dom.js";
import { waitText } from "./errors.js";
import { act } from "./form.js";
import { t } from "./i18n.js";
import { showProblem } from "./problem.js";

/**
 * Sends something by mail.
 * @param {string} text
 * @param {object} how
 * @param {string} [how.class]
 * @param {string} how.busy what the button says meanwhile
 * @param {() => Promise<number>} how.send returns the seconds until it may be sent again
 * @param {(error: unknown) => boolean} [how.taken] whether an error has been dealt with
 */
export function sendButton(text, { class: kind = "secondary", busy, send, taken }) {
  const button = el("button", { type: "button", class: kind }, text);
  button.addEventListener("click", async () => {
    let seconds = 0;
    const fail = (/** @type {unknown} */ error) => {
      if (taken?.(error)) return;
      if (error instanceof Refusal && error.status === 429) seconds = error.retryAfter;
      if (seconds) say(waitText(seconds));
      else showProblem(error);
    };
    const work = async () => {
      seconds = await send();
    };
    await act(button, busy, work, { fail });
    if (seconds) pause(button, seconds);
  });
  return button;
}

/**
 * @param {HTMLElement} button
 * @param {number} seconds
 */
export function pause(button, seconds) {
  const ends = Date.now() + seconds * 1000;
  button.setAttribute("aria-disabled", "true");
  const tick = () => {
    const left = Math.ceil((ends - Date.now()) / 1000);
    if (left > 0) {
      button.textContent = t("send_again_in", { count: left });
      return;
    }
    clearInterval(timer);
    button.removeAttribute("aria-disabled");
    button.textContent = t("send_again");
  };
  const timer = setInterval(tick, 1000);
  tick();
}
