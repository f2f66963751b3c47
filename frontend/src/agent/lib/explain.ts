import { Problem, Unreachable } from '../../shared/api/client';
import { clause, said } from '../i18n/daemon';
import { t, type MessageKey } from '../i18n';
import { PortError } from './portrange';

/** What we say where the daemon's own words add nothing. */
const whole: Partial<Record<Problem['code'], MessageKey>> = {
  not_configured: 'error.not_configured',
  control_busy: 'error.control_busy',
};

/** What introduces the daemon's own words. */
const before: Partial<Record<Problem['code'], MessageKey>> = {
  invalid_token: 'error.invalid_token',
  relay_rejected: 'error.relay_rejected',
  relay_unreachable: 'error.relay_unreachable',
  unauthorized: 'error.unauthorized',
  payload_too_large: 'error.payload_too_large',
};

/** What the daemon begins with and our introduction has said, or says worse. */
const introduced = /^(the relay refused|not an auth token): /;
const alone = /^(there is no session with the relay now|adit is paused)/;

/**
 * Returns what to tell the reader: our sentence in their language, and the
 * daemon's own words where they add to it.
 */
export function explain(error: unknown): string {
  if (error instanceof PortError) return ofPort(error, explain(error.cause));
  if (error instanceof Problem) {
    if (error.code === 'precondition_failed') return t('error.policy_changed');
    const key = whole[error.code];
    if (key) return t(key);
    const intro = before[error.code];
    if (!intro || alone.test(error.message)) return said(error.message);
    const why = clause(error.message.replace(introduced, ''));
    return t('error.with_reason', { what: t(intro), why });
  }
  if (error instanceof Unreachable && error.denied) return t('link.denied.text');
  if (error instanceof Unreachable) return t(error.unsure ? 'error.unsure' : 'error.no_daemon');
  return error instanceof Error ? error.message : String(error);
}

function ofPort({ port, left }: PortError, why: string): string {
  return left.length === 0
    ? t('error.port', { port, why })
    : t('error.port.left', { port, why, names: left.join(', ') });
}

/** Returns what to tell beside the field at fault if a form has it, and which one that is. */
export function refusalOf(
  error: unknown,
  has: (field: string) => boolean,
): { field: string; text: string } {
  const cause = error instanceof PortError ? error.cause : error;
  const field = cause instanceof Problem ? (cause.field ?? '') : '';
  if (!has(field)) return { field: '', text: explain(error) };
  // A field's own sentence needs no introduction.
  const { beside } = cause as Problem;
  return error instanceof PortError
    ? { field, text: ofPort(error, clause(beside)) }
    : { field, text: said(beside) };
}
