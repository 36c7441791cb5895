// Spans of time in words.

export function inWords(seconds) {
  const [count, unit] = seconds % 60 ? [seconds, "second"] : [seconds / 60, "minute"];
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}
