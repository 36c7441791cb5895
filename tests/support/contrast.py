"""Contrast of a page's texts (WCAG 2.2, success criterion 1.4.3)."""

from playwright.sync_api import Page

ENOUGH = 4.5
# Every visible text with its contrast to its background, taking ancestors' opacity into account.
MEASURED = """() => {
  const colour = (text) => {
    const [red, green, blue, alpha = 1] = text.match(/[\\d.]+/g).map(Number);
    return { parts: [red, green, blue], alpha };
  };
  const over = (upper, lower) =>
    lower.map((part, index) => upper.parts[index] * upper.alpha + part * (1 - upper.alpha));
  const linear = (part) =>
    part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4;
  const luminance = ([red, green, blue]) =>
    0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  const known = new Map();
  const measured = (node) => {
    const style = getComputedStyle(node);
    const above = node.parentElement
      ? surroundings(node.parentElement) : { background: [255, 255, 255], opacity: 1 };
    return {
      background: over(colour(style.backgroundColor), above.background),
      opacity: above.opacity * Number(style.opacity),
    };
  };
  const surroundings = (node) => {
    if (!known.has(node)) known.set(node, measured(node));
    return known.get(node);
  };
  const ratio = (node) => {
    const { background, opacity } = surroundings(node);
    const ink = colour(getComputedStyle(node).color);
    ink.alpha *= opacity;
    const found = [luminance(over(ink, background)), luminance(background)].sort((a, b) => b - a);
    return (found[0] + 0.05) / (found[1] + 0.05);
  };
  const hasText = (node) =>
    [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
  const isSeen = (node) => {
    const box = node.getBoundingClientRect();
    const isThere = box.width > 2 && box.height > 2;
    return isThere && getComputedStyle(node).visibility === "visible";
  };
  return [...document.querySelectorAll("body *")].filter(hasText).filter(isSeen)
    .map((node) => [node.textContent.trim().slice(0, 40), node.className, ratio(node)]);
}"""


def pale_texts(page: Page) -> list[str]:
    """Return the texts whose contrast is too low, with their class and contrast."""
    page.evaluate("() => Promise.all(document.getAnimations().map((one) => one.finished))")
    measured = page.evaluate(MEASURED)
    assert len(measured) > 100
    pale = [found for found in measured if found[2] < ENOUGH]
    return sorted({f"{text} ({name}) {ratio:.2f}" for text, name, ratio in pale})
