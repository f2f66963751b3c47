import { Problem, Unreachable } from '../../shared/api/client';
import { t, type MessageKey } from '../i18n';
import { said } from '../i18n/relay';
import type { ErrorCode } from '../api/types';

const known: Partial<Record<ErrorCode, MessageKey>> = {
  wrong_login: 'error.wrong_login',
  wrong_code: 'error.wrong_code',
  code_required: 'error.code_required',
  forbidden: 'error.forbidden',
  conflict: 'error.conflict',
  too_many_tries: 'error.too_many_tries',
  payload_too_large: 'error.payload_too_large',
  unauthorized: 'error.unauthorized',
};

/** Returns what to tell the reader: our sentence where the code has one, else the relay's own, in the reader's language. */
export function explain(error: unknown): string {
  if (error instanceof Problem) {
    const key = known[error.code as ErrorCode];
    return key ? t(key) : said(error.message);
  }
  if (error instanceof Unreachable) return t(error.unsure ? 'error.unsure' : 'error.no_relay');
  return error instanceof Error ? error.message : String(error);
}

/** Returns the message for a field of a form, if that is what is at fault. */
export function faultOf(error: unknown, field: string): string {
  if (!(error instanceof Problem) || !error.field) return '';
  return error.field === field ||
    error.field.startsWith(`${field}.`) ||
    error.field.startsWith(`${field}[`)
    ? said(error.beside)
    : '';
}
