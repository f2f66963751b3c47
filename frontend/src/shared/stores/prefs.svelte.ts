/** What the reader chose for this browser: language and theme. */
export type Lang = 'en' | 'zh-CN';
export type Theme = 'system' | 'light' | 'dark';

const langs: readonly Lang[] = ['en', 'zh-CN'];
const themes: readonly Theme[] = ['system', 'light', 'dark'];

function stored<T extends string>(key: string, known: readonly T[]): T | undefined {
  try {
    const value = localStorage.getItem(key);
    return known.find((k) => k === value);
  } catch {
    // Storage may be forbidden; the choice then lasts as long as the page.
    return undefined;
  }
}

function store(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // As above.
  }
}

/** Returns the language for the browser's own list of languages. */
export function langFor(wanted: readonly string[]): Lang {
  for (const tag of wanted) {
    if (/^zh\b/i.test(tag)) return 'zh-CN';
    if (/^en\b/i.test(tag)) return 'en';
  }
  return 'en';
}

class Prefs {
  lang = $state<Lang>('en');
  theme = $state<Theme>('system');
  systemDark = $state(false);
  dark = $derived(this.theme === 'dark' || (this.theme === 'system' && this.systemDark));

  /** Reads what was chosen before, and follows the system from now on. */
  load(): void {
    this.lang = stored('adit.lang', langs) ?? langFor(navigator.languages);
    this.theme = stored('adit.theme', themes) ?? 'system';
    const media = matchMedia('(prefers-color-scheme: dark)');
    this.systemDark = media.matches;
    media.addEventListener('change', (e) => (this.systemDark = e.matches));
  }

  setLang(lang: Lang): void {
    this.lang = lang;
    store('adit.lang', lang);
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    store('adit.theme', theme);
  }
}

export const prefs = new Prefs();
