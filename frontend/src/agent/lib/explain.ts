import { Problem, Unreachable } from '../../shared/api/client';
import { said } from '../i18n/daemon';
import { t, type MessageKey } from '../i18n';

const known: Partial<Record<Problem['code'], MessageKey>> = {
  invalid_token: 'error.invalid_token',
  relay_rejected: 'error.relay_rejected',
  not_configured: 'error.not_configured',
  control_busy: 'error.control_busy',
  relay_unreachable: 'error.relay_unreachable',
  unauthorized: 'error.unauthorized',
  payload_too_large: 'error.payload_too_large',
};

/**
 * Returns what to tell the reader: our sentence in their language, and the
 * daemon's own words where they add to it.
 */
export function explain(error: unknown): string {
  if (error instanceof Problem) {
    if (error.code === 'precondition_failed') return t('error.policy_changed');
    const key = known[error.code];
    // Our sentence has said who refused.
    const why = said(key ? error.message.replace(/^the relay refused: /, '') : error.message);
    return key ? t('error.with_reason', { what: t(key), why }) : why;
  }
  if (error instanceof Unreachable && error.denied) return t('link.denied.text');
  if (error instanceof Unreachable) return t(error.unsure ? 'error.unsure' : 'error.no_daemon');
  return error instanceof Error ? error.message : String(error);
}
