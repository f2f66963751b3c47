import type { Lang } from '../stores/prefs.svelte';

/**
 * What a program says in English, with what varies in braces, and what that is
 * in Chinese. After a * what varies may be a sentence of the same list, too.
 */
export type Sentence = readonly [said: string, means: string];

const hole = /\{(\d)(\*?)\}/g;
const deepest = 4;

/** Returns what was said in a language; what is not known stays as it is. */
export type Translate = (text: string, lang: Lang) => string;

/** Makes a Translate of Chinese sentences, of which the first that fits counts. */
export function interpreter(chinese: readonly Sentence[]): Translate {
  const patterns = chinese.map(([said, means]) => {
    const escaped = said
      .replace(/[.*+?^$()|[\]\\]/g, (mark) => `\\${mark}`)
      .replace(/\{\d(\\\*)?\}/g, '(.+?)');
    return { pattern: new RegExp(`^${escaped}$`, 's'), means };
  });
  const translate = (text: string, depth: number): string => {
    if (depth > deepest) return text;
    for (const { pattern, means } of patterns) {
      const found = pattern.exec(text);
      if (!found) continue;
      return means.replace(hole, (_, n: string, sentence: string) => {
        const part = found[Number(n) + 1] ?? '';
        return sentence ? translate(part, depth + 1) : part;
      });
    }
    return text;
  };
  return (text, lang) => (lang === 'zh-CN' ? translate(text, 0) : text);
}
