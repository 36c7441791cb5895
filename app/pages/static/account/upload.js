// @ts-check
// Sends a picture and shows how far it is; only XMLHttpRequest tells that of what is sent.

import { call, headersOfChange, noteOtherUser, Refusal } from "../base/api.js";
import { el, replace, say } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { orSignIn } from "../base/session.js";
import { button } from "../console/fields.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"post", "/auth/profile/avatar/upload">} Uploaded */

const ADDRESS = "/api/v1/auth/profile/avatar/upload";

/**
 * Returns the answer, or null if it was cancelled.
 * @param {Blob} picture
 * @param {HTMLElement} host
 * @returns {Promise<Uploaded | null>}
 * @throws {Refusal}
 */
export async function upload(picture, host) {
  // Renews the session if it has to be, so that nothing is sent in vain.
  await orSignIn(call("get", "/auth/me", { query: { fields: "profile" } }));
  const bar = el("progress", { max: 100, value: 0, "aria-label": t("upload.sending") });
  const words = el("span", { class: "hint" }, t("upload.sending"));
  const cancel = button(t("cancel"), { class: "secondary small" });
  replace(host, bar, words, cancel);
  host.hidden = false;
  say(t("upload.sending"));
  try {
    return await sent(picture, cancel, (percent) => {
      if (percent < 100) bar.value = percent;
      else bar.removeAttribute("value");
      words.textContent = percent < 100 ? t("upload.percent", { percent }) : t("upload.processing");
    });
  } finally {
    host.hidden = true;
    replace(host);
  }
}

/**
 * @param {Blob} picture
 * @param {HTMLElement} cancel
 * @param {(percent: number) => void} progressed
 * @returns {Promise<Uploaded | null>}
 */
function sent(picture, cancel, progressed) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", ADDRESS);
    request.responseType = "json";
    for (const [name, value] of Object.entries(headersOfChange()))
      request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", ({ loaded, total }) =>
      progressed(Math.round((loaded / total) * 100)),
    );
    request.addEventListener("abort", () => resolve(null));
    request.addEventListener("error", () =>
      reject(new Refusal({ status: 0, code: "network", isChange: true })),
    );
    request.addEventListener("load", () => {
      const { code = "unknown", msg = "", data } = request.response ?? {};
      if (request.status === 200 && code === "success") return resolve(data);
      const refusal = refusalOf(request, code, msg);
      noteOtherUser(refusal);
      return reject(refusal);
    });
    cancel.addEventListener("click", () => request.abort());
    const form = new FormData();
    form.append("file", picture, picture.type === "image/webp" ? "picture.webp" : "picture.png");
    request.send(form);
  });
}

/**
 * @param {XMLHttpRequest} request
 * @param {string} code
 * @param {string} msg
 */
function refusalOf(request, code, msg) {
  const retryAfter = Number(request.getResponseHeader("Retry-After") ?? 0);
  const requestId = request.getResponseHeader("X-Request-ID") ?? "";
  return new Refusal({ status: request.status, code, msg, retryAfter, requestId, isChange: true });
}
