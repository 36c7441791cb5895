// What an authenticator app is fed with, and the code that finishes its set-up.

import { picture } from "../api.js";
import { el, replace } from "../base/dom.js";
import { codeInput, field } from "./code_field.js";
import { copyButton } from "./copy_button.js";
import { recoveryCodes } from "./recovery_codes.js";

// After these the set-up begins anew.
const OVER = new Set(["auth.token_invalid", "auth.mfa_factor_already_exists"]);
const NO_PICTURE = "There is no QR code for this link: it is too long, or the service could not draw it. Type the secret, or open the link.";

// `data` is what setup/start answered; `enabled(data)` says what the answer of setup/finish means.
export function totpSetup(data, { id, run }, enabled) {
  const code = codeInput(`${id}-code`);
  const name = el("input", { id: `${id}-name`, type: "text", autocomplete: "off", placeholder: "Authenticator app" });
  const finish = async (event) => {
    event.preventDefault();
    const body = { flow_token: data.flow_token, code: code.value, ...(name.value && { name: name.value }) };
    const answer = await run({ method: "POST", path: "auth/mfa/totp/setup/finish", body }, enabled);
    if (answer?.ok) replace(host, recoveryCodes(answer.json.data.recovery_codes));
    else if (OVER.has(answer?.json?.code)) host.remove();
    else code.select();
  };
  const form = el(
    "form",
    { novalidate: true, submit: finish },
    field(code, "Code from the app", "The six digits that it shows now."),
    field(name, "Name", "Shown in the list. Up to 128 characters."),
    el("button", { class: "primary", type: "submit" }, "Finish the set-up"),
  );
  const host = el("div", {}, qrCode(data.otpauth_uri), secret(data), form);
  return host;
}

// The API answers with the link alone, and a frontend draws it: this picture is the page's own.
function qrCode(uri) {
  const figure = el("figure", { class: "scan" }, el("figcaption", {}, "Scan this with an authenticator app:"));
  drawn(uri).then((image) => {
    if (image) figure.append(image);
    else figure.replaceWith(el("p", { class: "hint", role: "status" }, NO_PICTURE));
  });
  return figure;
}

// Returns null where there is none. The SVG is shown as an image and not put into the document: as
// one it runs no script and loads nothing, whatever is in it.
async function drawn(uri) {
  const file = await picture({ method: "POST", path: "docs/qr-code", body: { otpauth_uri: uri } });
  if (!file) return null;
  const image = el("img", { alt: "QR code of the link below", src: URL.createObjectURL(file) });
  try {
    await image.decode();
    return image;
  } catch {
    return null;
  } finally {
    URL.revokeObjectURL(image.src);
  }
}

function secret({ secret: text, otpauth_uri: uri }) {
  const shown = el("code", { class: "secret" }, text.match(/.{1,4}/g).join(" "));
  return el(
    "div",
    { class: "by-hand" },
    el("p", {}, "Or type the secret, without its spaces:"),
    shown,
    copyButton("Copy the secret", text, shown),
    el("p", {}, el("a", { href: uri }, "Open the link in an app on this device")),
  );
}
