// @ts-check
// What a browser says it is, in words that people know.

import { t } from "../base/i18n.js";

/** The first that fits: most claim to be some of the later ones, too. @type {[RegExp, string][]} */
const BROWSERS = [
  [/\bEdg(e|A|iOS)?\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\bSamsungBrowser\//, "Samsung Internet"],
  [/\b(Firefox|FxiOS)\//, "Firefox"],
  [/\b(Chrome|CriOS|HeadlessChrome)\//, "Chrome"],
  [/\bSafari\//, "Safari"],
  [/^curl\//, "curl"],
];
/** @type {[RegExp, string][]} */
const PLATFORMS = [
  [/\biPhone\b/, "iPhone"],
  [/\biPad\b/, "iPad"],
  [/\bAndroid\b/, "Android"],
  [/\bWindows\b/, "Windows"],
  [/\b(Macintosh|Mac OS X)\b/, "Mac"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bLinux\b/, "Linux"],
];

/** @param {string | null} agent */
export function deviceWords(agent) {
  const browser = first(BROWSERS, agent);
  const platform = first(PLATFORMS, agent);
  if (browser && platform) return t("agent.on", { browser, platform });
  return browser || platform || t("agent.unknown");
}

/**
 * What the service calls a browser, such as "Firefox on Windows".
 * @param {string} name
 */
export function browserWords(name) {
  const [browser = "", platform] = name.split(" on ");
  if (platform) return t("agent.on", { browser, platform });
  return name === "Unknown browser" ? t("agent.unknown") : name;
}

/**
 * @param {[RegExp, string][]} known
 * @param {string | null} agent
 */
function first(known, agent) {
  return known.find(([pattern]) => pattern.test(agent ?? ""))?.[1] ?? "";
}
