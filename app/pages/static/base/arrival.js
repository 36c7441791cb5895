// @ts-check
// No module: it runs before all of them, and sees which parts of the page do not arrive. The page
// is then loaded once more, and if that does not help, it says so: what it says is in the document.

window.addEventListener(
  "error",
  ({ target }) => {
    const isStyle = target instanceof HTMLLinkElement && target.rel === "stylesheet";
    if (!isStyle && !(target instanceof HTMLScriptElement)) return;
    if (window.history.state?.isRetry) {
      document.documentElement.dataset.incomplete = "";
      document.getElementById("incomplete")?.removeAttribute("hidden");
    } else {
      window.history.replaceState({ ...window.history.state, isRetry: true }, "");
      window.location.reload();
    }
  },
  true, // errors of elements do not bubble
);
