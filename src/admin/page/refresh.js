"use strict";
(() => {
  const EVERY_MS = 10000;
  const PATIENCE_MS = 8000;
  const WAITS = "Text is selected: the figures wait for the end of that.";
  const button = document.getElementById("pause");
  const note = document.getElementById("note");
  const figures = () => document.getElementById("figures");
  let paused = false;
  let asking = false;
  let timer;

  const say = (text) => {
    if (note.textContent !== text) note.textContent = text;
  };

  // A link keeps the focus as long as it is on the page, and the page keeps its place. Returns what there is to say.
  const swap = (text) => {
    const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("figures");
    if (!fresh) throw new Error("no figures");
    const old = figures();
    if (fresh.dataset.version !== old.dataset.version) {
      location.reload();
      return "";
    }
    const selected = getSelection();
    if (selected && !selected.isCollapsed && old.contains(selected.anchorNode)) return WAITS;
    const focused = old.contains(document.activeElement) ? document.activeElement.id : null;
    const [x, y] = [scrollX, scrollY];
    old.replaceWith(document.adoptNode(fresh));
    if (focused !== null) {
      (document.getElementById(focused) ?? figures()).focus({ preventScroll: true });
    }
    scrollTo({ left: x, top: y, behavior: "instant" });
    return "";
  };

  const refresh = async () => {
    if (asking) return;
    asking = true;
    let said;
    try {
      const answer = await fetch("/", {
        mode: "same-origin",
        cache: "no-store",
        redirect: "error",
        signal: AbortSignal.timeout(PATIENCE_MS),
      });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const text = await answer.text();
      if (!paused && !document.hidden) said = swap(text);
    } catch {
      said = "bursar does not answer: the figures are old.";
    } finally {
      asking = false;
    }
    // It was paused while the answer was on its way: that is said, and stays.
    if (!paused && said !== undefined) say(said);
  };

  const schedule = () => {
    clearInterval(timer);
    timer = paused || document.hidden ? undefined : setInterval(refresh, EVERY_MS);
  };

  button.addEventListener("click", () => {
    paused = !paused;
    button.textContent = paused ? "Resume" : "Pause";
    say(paused ? "Paused." : "");
    schedule();
    if (!paused) refresh();
  });
  document.addEventListener("visibilitychange", () => {
    schedule();
    if (!paused && !document.hidden) refresh();
  });
  button.hidden = false;
  schedule();
})();
