// @ts-check
// A button that has a code mailed, and may be used again after some time.

import { Refusal } from "./api.js";
import { el } from "./dom.js";
import { busy } from "./form.js";
import { say } from "./page.js";
import { pause } from "./pause.js";

/**
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
