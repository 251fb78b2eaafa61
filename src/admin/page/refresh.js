"use strict";
(() => {
  const EVERY_MS = 10000;
  const PATIENCE_MS = 8000;
  const button = document.getElementById("pause");
  const note = document.getElementById("note");
  const figures = () => document.getElementById("figures");
  let paused = false;
  let asking = false;
  let timer;

  const say = (text) => {
    if (note.textContent !== text) note.textContent = text;
  };

  // A link keeps the focus as long as it is on the page, and the page keeps its place.
  const swap = (text) => {
    const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("figures");
    if (!fresh) throw new Error("no figures");
    const old = figures();
    if (fresh.dataset.version !== old.dataset.version) return location.reload();
    const selected = getSelection();
    if (selected && !selected.isCollapsed && old.contains(selected.anchorNode)) return;
    const focused = old.contains(document.activeElement) ? document.activeElement.id : null;
    const [x, y] = [scrollX, scrollY];
    old.replaceWith(document.adoptNode(fresh));
    if (focused !== null) {
      (document.getElementById(focused) ?? figures()).focus({ preventScroll: true });
    }
    scrollTo({ left: x, top: y, behavior: "instant" });
  };

  const refresh = async () => {
    if (asking) return;
    asking = true;
    try {
      const answer = await fetch("/", {
        mode: "same-origin",
        cache: "no-store",
        redirect: "error",
        signal: AbortSignal.timeout(PATIENCE_MS),
      });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const text = await answer.text();
      if (!paused && !document.hidden) swap(text);
      say("");
    } catch {
      say("bursar does not answer: the figures are old.");
    } finally {
      asking = false;
    }
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
