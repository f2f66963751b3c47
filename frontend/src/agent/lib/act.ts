import { toasts } from '../../shared/stores/toasts.svelte';
import { t, type MessageKey, type Params } from '../i18n';
import { explain } from './explain';

export { copy, save } from '../../shared/lib/clipboard';

/** Does something and tells in the corner how it went; reports success. */
export async function act(
  what: () => Promise<unknown>,
  done?: MessageKey,
  params?: Params,
): Promise<boolean> {
  try {
    await what();
    if (done) toasts.show({ kind: 'ok', text: t(done, params) });
    return true;
  } catch (error) {
    toasts.show({ kind: 'bad', text: explain(error) });
    return false;
  }
}
