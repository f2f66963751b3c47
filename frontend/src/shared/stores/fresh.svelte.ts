/** What a document names as its code; the name changes whenever the code does. */
const codeOf = (page: Document) =>
  page.querySelector('script[type=module]')?.getAttribute('src') ?? '';

/** Returns the code that the server gives now; nothing if that cannot be told. */
async function servedCode(): Promise<string> {
  try {
    const answer = await fetch(location.pathname + location.search, { cache: 'no-store' });
    return codeOf(new DOMParser().parseFromString(await answer.text(), 'text/html'));
  } catch {
    return '';
  }
}

/** Reports whether a reload would take something from the reader. */
function busy(): boolean {
  // What asks before it goes is asked now.
  const asks = !dispatchEvent(new Event('beforeunload', { cancelable: true }));
  // What is looked for stands in the location; only who is typing it is not to be stopped.
  const fields = document.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>(
    'textarea, input:not([type=radio], [type=checkbox], [type=search]), input[type=search]:focus',
  );
  const typed = [...fields].some((field) => field.value !== '');
  return asks || typed || !!document.querySelector('dialog[open]');
}

const key = 'adit.reloaded';

/** Reports whether this tab was not yet reloaded for the code: of two nodes one may be older. */
function firstTime(code: string): boolean {
  try {
    if (sessionStorage.getItem(key) === code) return false;
    sessionStorage.setItem(key, code);
    return true;
  } catch {
    // No storage, no memory: the reader decides.
    return false;
  }
}

/** Keeps a page that stays open for days from being older than the program it asks. */
class Fresh {
  /** The page is older than the program, and is left to the reader, who is in the middle of something. */
  stale = $state(false);

  /** Loads the page again if the program has another one by now, as after an update. */
  async check(): Promise<void> {
    const code = await servedCode();
    if (!code || code === codeOf(document)) return;
    if (busy()) this.stale = true;
    else if (firstTime(code)) location.reload();
  }

  /** Checks every so often, while the page can be seen, and when it is seen again. */
  follow(everyMs: number): () => void {
    let due = false;
    const look = () => {
      if (!due || document.hidden) return;
      due = false;
      void this.check();
    };
    const timer = setInterval(() => {
      due = true;
      look();
    }, everyMs);
    document.addEventListener('visibilitychange', look);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', look);
    };
  }
}

export const fresh = new Fresh();
