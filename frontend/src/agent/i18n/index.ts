import { translator } from '../../shared/i18n';
import { en } from './en';
import { zh } from './zh';

export type { Params } from '../../shared/i18n';
export type MessageKey = keyof typeof en;
/** Every language has exactly the keys of the English file; the type holds it. */
export type Messages = Record<MessageKey, string>;

export const t = translator<MessageKey>({ en, 'zh-CN': zh });
