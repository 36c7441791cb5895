// @ts-check
// Buttons that may be used again after some time, and count down till then.

import { Refusal } from "./api.js";
import { el } from "./dom.js";
import { busy } from "./form.js";
import { t } from "./i18n.js";
import { say } from "./page.js";

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

/**
 * A button that has a code mailed.
 * @param {object} how
 * @param {string} how.text
 * @param {string} how.sending said while it is sent
 * @param {string} how.sent said once it is sent
 * @param {string} how.field id of the field for the code, which gets the focus
 * @param {string} [how.style]
 * @param {() => Promise<{ resend_after: number }>} how.send
 * @param {(error: unknown) => void} how.fail
 */
export function codeButton({ text, sending, sent, field, style = "secondary", send, fail }) {
  const button = el("button", { type: "button", class: style }, text);
  button.addEventListener("click", async () => {
    if (button.getAttribute("aria-disabled")) return;
    const finish = busy(button, sending);
    try {
      const { resend_after: seconds } = await send();
      finish();
      say(sent);
      document.getElementById(field)?.focus();
      pause(button, seconds);
    } catch (error) {
      finish();
      const isTooEarly = error instanceof Refusal && error.status === 429;
      if (isTooEarly && error.retryAfter) pause(button, error.retryAfter);
      else fail(error);
    }
  });
  return button;
}
