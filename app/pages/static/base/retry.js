// @ts-check
// Reads that go on until the service answers, a change is never repeated; modules that few visits
// need.

import { Refusal } from "./api.js";
import { el } from "./dom.js";
import { t } from "./i18n.js";
import { clearProblem, showProblem } from "./problem.js";

const LONGEST_SECONDS = 30;

/**
 * Asks again after 1, 2, 4 … 30 s while there is no answer. `waiting` is called each time with the
 * reason and with what ends the wait.
 * @template T
 * @param {() => Promise<T>} ask
 * @param {(error: Refusal, again: () => void) => void} [waiting]
 * @returns {Promise<T>}
 * @throws {Refusal} if the answer is a refusal
 */
export async function untilAnswered(ask, waiting = () => undefined) {
  for (let seconds = 1; ; seconds = Math.min(2 * seconds, LONGEST_SECONDS)) {
    try {
      return await ask();
    } catch (error) {
      const isPassing = error instanceof Refusal && (error.isPassing || error.status === 429);
      if (!isPassing) throw error;
      const pause = Math.max(seconds, error.retryAfter) * 1000;
      await new Promise((done) => {
        const timer = setTimeout(done, pause, undefined);
        waiting(error, () => {
          clearTimeout(timer);
          done(undefined);
        });
      });
    }
  }
}

/**
 * The same for what the page cannot do without: says what is the matter, and offers to ask at once.
 * @template T
 * @param {() => Promise<T>} ask
 * @param {{ isQuiet?: boolean }} [how] as in showProblem
 * @returns {Promise<T>}
 * @throws {Refusal}
 */
export async function load(ask, { isQuiet = false } = {}) {
  let again = () => undefined;
  let isShown = false;
  try {
    return await untilAnswered(ask, (error, next) => {
      again = /** @type {() => undefined} */ (next);
      if (isShown) return;
      isShown = true;
      const button = el(
        "button",
        { type: "button", class: "secondary small", click: () => again() },
        t("retry"),
      );
      showProblem(error, { actions: [button], isQuiet });
    });
  } finally {
    if (isShown) clearProblem();
  }
}

/**
 * Loads a module when it is needed, and once more if it did not arrive.
 * @template T
 * @param {() => Promise<T>} load imports it
 * @returns {Promise<T>}
 */
export function onDemand(load) {
  return load().catch(load);
}
