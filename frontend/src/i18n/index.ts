import { prefs, type Lang } from '../stores/prefs.svelte';
import { en } from './en';
import { zh } from './zh';

export type MessageKey = keyof typeof en;
/** Every language has exactly the keys of the English file; the type holds it. */
export type Messages = Record<MessageKey, string>;
export type Params = Record<string, string | number>;

const files: Record<Lang, Messages> = { en, 'zh-CN': zh };

/**
 * Returns a message in the reader's language. Where a message has two forms,
 * parted by "|", the number n chooses between one and many.
 */
export function t(key: MessageKey, params?: Params): string {
  return message(files[prefs.lang][key], params);
}

/** Fills a message in; split from t for the tests. */
export function message(text: string, params: Params = {}): string {
  const forms = text.split('|');
  const form = forms.length > 1 && params.n !== 1 ? forms[1] : forms[0];
  return (form ?? text).replace(/\{(\w+)\}/g, (whole, name: string) =>
    name in params ? String(params[name]) : whole,
  );
}
