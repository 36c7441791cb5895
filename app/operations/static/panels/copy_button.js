// A button that copies what is shown beside it.

import { el } from "../base/dom.js";

// `shown` is the element with the text; `text` is what is copied. Without https, or without leave,
// there is no clipboard for a page: then the text is selected, for the person to copy.
export function copyButton(label, text, shown) {
  const told = el("span", { class: "quiet", role: "status" });
  const copy = async () => {
    told.textContent = "";
    try {
      await window.navigator.clipboard.writeText(text);
      told.textContent = "Copied.";
    } catch {
      window.getSelection().selectAllChildren(shown);
      told.textContent = "Selected: copy it with the keyboard or the menu.";
    }
  };
  const button = el("button", { type: "button", class: "secondary", click: copy }, label);
  return el("div", { class: "row" }, button, told);
}
