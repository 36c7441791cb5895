// @ts-check
// A button that may be used again after some time, and counts down till then.

import { t } from "./i18n.js";

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
