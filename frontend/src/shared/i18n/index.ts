import { isolated } from '../lib/visible';
import { prefs, type Lang } from '../stores/prefs.svelte';
import { en } from './en';
import { zh } from './zh';

export type Params = Record<string, string | number>;

/**
 * Returns a function that says a message in the reader's language. Where a
 * message has two forms, parted by "|", the number n chooses between one and many.
 */
export function translator<Key extends string>(files: Record<Lang, Record<Key, string>>) {
  return (key: Key, params?: Params): string => {
    // What is newer than the page has no message: it is said as it is called.
    const text = files[prefs.lang][key] as string | undefined;
    return text === undefined ? key.slice(key.lastIndexOf('.') + 1) : message(text, params);
  };
}

/** Fills a message in; split from translator for the tests. What is filled in may be of strangers. */
export function message(text: string, params: Params = {}): string {
  const forms = text.split('|');
  const form = forms.length > 1 && params.n !== 1 ? forms[1] : forms[0];
  return (form ?? text).replace(/\{(\w+)\}/g, (whole, name: string) =>
    name in params ? isolated(String(params[name])) : whole,
  );
}

export type MessageKey = keyof typeof en;

/** Says what shared components say; each app has a t of its own. */
export const t = translator({ en, 'zh-CN': zh });
