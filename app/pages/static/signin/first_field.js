// @ts-check
// Where somebody begins to type.

import { byId } from "../base/dom.js";

/**
 * Puts the cursor into the first field, unless there is something to read first, somebody is
 * somewhere already, or a keyboard would come up and cover half of the page.
 * @param {HTMLFormElement | null | undefined} form
 */
export function focusFirst(form) {
  const isToRead =
    document.querySelector("#notes > *, #unsent:target, [data-incomplete]") ||
    !byId("problem").hidden;
  const isSomewhere = document.activeElement !== document.body;
  if (isToRead || isSomewhere || window.matchMedia("(pointer: coarse)").matches) return;
  /** @type {HTMLElement | null | undefined} */ (
    form?.querySelector("input:not([hidden], [readonly])")
  )?.focus();
}
