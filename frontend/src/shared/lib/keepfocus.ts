const stops = 'a[href], button, input, select, textarea, summary, [tabindex="0"]';

/** Returns where the Tab key stops within an element, itself included. */
function stopsIn(root: Element): HTMLElement[] {
  return [root, ...root.querySelectorAll(stops)].filter(
    (e): e is HTMLElement =>
      e instanceof HTMLElement &&
      e.matches(stops) &&
      !e.matches(':disabled, [tabindex="-1"]') &&
      e.checkVisibility(),
  );
}

/** Where something stood: which child of whose, and which stop within that child. */
interface Place {
  parent: Element;
  child: number;
  stop: number;
}

/**
 * Gives the focus to what stands beside it when what had it is taken off the page: to
 * the next row when one is deleted, to the list when its detail is closed. Browsers
 * leave it nowhere then. Returns the end of it.
 */
export function keepFocus(root: HTMLElement): () => void {
  let last: HTMLElement | undefined;
  let places: Place[] = [];

  function note({ target }: FocusEvent) {
    if (!(target instanceof HTMLElement)) return;
    last = target;
    places = [];
    for (let at: Element = last; at !== root && at.parentElement; at = at.parentElement)
      places.push({
        parent: at.parentElement,
        child: [...at.parentElement.children].indexOf(at),
        stop: stopsIn(at).indexOf(last),
      });
  }

  /** Who clicks beside everything wants nothing to have it. */
  function left() {
    queueMicrotask(() => {
      if (last?.isConnected && last !== document.activeElement) last = undefined;
    });
  }

  function look() {
    if (!last || last.isConnected) return;
    const now = document.activeElement;
    if (now && now !== document.body) return;
    last = undefined;
    for (const { parent, child, stop } of places) {
      if (!parent.isConnected) continue;
      for (const near of [parent.children[child], parent.children[child - 1]]) {
        const all = near ? stopsIn(near) : [];
        const next = all[Math.max(0, Math.min(stop, all.length - 1))];
        if (next) return next.focus({ preventScroll: true });
      }
    }
  }

  const observer = new MutationObserver(look);
  observer.observe(root, { childList: true, subtree: true });
  root.addEventListener('focusin', note);
  root.addEventListener('focusout', left);
  return () => {
    observer.disconnect();
    root.removeEventListener('focusin', note);
    root.removeEventListener('focusout', left);
  };
}
