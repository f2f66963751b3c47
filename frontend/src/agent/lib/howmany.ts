import { count } from '../../shared/lib/format';
import { prefs } from '../../shared/stores/prefs.svelte';
import { t } from '../i18n';

/** Returns how many of a list are shown, and of how many where those are not all. */
export function howMany(shown: number, all: number): string {
  const [some, total] = [count(shown, prefs.lang), count(all, prefs.lang)];
  return shown === all ? total : t('list.of', { shown: some, all: total });
}
