// @ts-check
// The picture of an account: uploaded, from Gravatar, or none.

import { call } from "../base/api.js";
import { el, replace } from "../base/dom.js";
import { act } from "../base/form.js";
import { t } from "../base/i18n.js";
import { showNotice, showProblem } from "../base/problem.js";
import { orSignIn } from "../base/session.js";
import { avatar } from "../console/avatar.js";
import { button } from "../console/fields.js";
import { panel } from "../console/panel.js";
import { toast } from "../console/toast.js";
import { givesPictures } from "./canvas.js";
import { crop, OUTPUT } from "./crop.js";
import { upload } from "./upload.js";

/** @typedef {import("../base/session.js").Me} Me */
/** @typedef {NonNullable<Me["profile"]>} Profile */

const MAX_SOURCE_BYTES = 16 * 1024 * 1024;
const KINDS = "image/png,image/jpeg,image/webp,image/gif,image/bmp,image/avif";

/**
 * @param {HTMLElement} host
 * @param {Me} me
 * @param {(profile: Profile) => void} changed
 */
export function showPicture(host, me, changed) {
  const name = me.profile?.display_name || me.username;
  const { source = "none", url_512: url } = me.profile?.avatar ?? {};
  const progress = el("div", { class: "progress", hidden: true });
  const file = el("input", { type: "file", id: "picture-file", accept: KINDS, hidden: true });
  const choose = button(t("picture.choose"), { click: () => file.click() });
  const take = async (/** @type {File | undefined | null} */ chosen) => {
    if (!chosen) return;
    const done = await received(chosen, progress);
    file.value = "";
    if (done) changed(done);
    if (document.activeElement === document.body) host.querySelector("button")?.focus();
  };
  file.addEventListener("change", () => take(file.files?.[0]));
  const drop = el(
    "div",
    { class: "picture-drop" },
    avatar(name, url, "large"),
    el(
      "div",
      {},
      el("div", { class: "form-actions" }, choose, ...others(source, changed)),
      el("p", { class: "hint" }, t("picture.hint")),
    ),
  );
  drop.addEventListener("dragover", (event) => event.preventDefault());
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    take(event.dataTransfer?.files[0]);
  });
  drop.addEventListener("paste", (event) => take(event.clipboardData?.files[0]));
  const words = source === "gravatar" ? el("p", { class: "hint" }, t("picture.is_gravatar")) : null;
  replace(
    host,
    panel("picture", t("picture.title"), { lead: t("picture.lead") }, file, drop, words, progress),
  );
}

/**
 * Ways to have no uploaded picture.
 * @param {string} source
 * @param {(profile: Profile) => void} changed
 */
function others(source, changed) {
  const wanted = /** @type {const} */ (["gravatar", "none"]).filter((one) => one !== source);
  return wanted.map((one) => {
    const use = button(t(`picture.${one}`), {
      class: one === "none" ? "danger-line" : "secondary",
    });
    use.addEventListener("click", () =>
      act(use, t("one_moment"), async () => {
        const profile = await orSignIn(
          call("put", "/auth/profile/avatar/source", { body: { source: one } }),
        );
        changed(profile);
        toast(t("saved"));
      }),
    );
    return use;
  });
}

/**
 * Reads, crops and sends a picture; returns the profile then, or null. Where browsers let nobody
 * have what was drawn, the file itself is sent, of which the service shows the middle.
 * @param {File} file
 * @param {HTMLElement} progress
 * @returns {Promise<Profile | null>}
 */
async function received(file, progress) {
  if (file.size > MAX_SOURCE_BYTES) {
    showNotice(t("picture.too_large"));
    return null;
  }
  let picture;
  try {
    picture = await createImageBitmap(file, { imageOrientation: "from-image" });
  } catch {
    showNotice(t("error.file.type_not_allowed"));
    return null;
  }
  const isSmall = Math.max(picture.width, picture.height) <= OUTPUT;
  const cut = (await givesPictures()) ? await crop(picture) : null;
  picture.close();
  if (cut === undefined) return null;
  if (!cut && !isSmall) {
    showNotice(t("picture.whole_too_large", { side: OUTPUT }));
    return null;
  }
  try {
    const answer = await upload(cut ?? file, progress);
    if (!answer) return null;
    if (answer.applied && !cut) showNotice(t("picture.whole"), { kind: "good" });
    else if (answer.applied) toast(t("picture.saved"));
    else showNotice(t("picture.superseded"), { kind: "warn" });
    return answer.profile;
  } catch (error) {
    showProblem(error);
    return null;
  }
}
