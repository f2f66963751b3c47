import type { Tunnel } from '../../api/types';
import { t } from '../../i18n';
import { act, copy } from '../../lib/act';
import { explain } from '../../lib/explain';
import { visitCommand } from '../../lib/privatetunnel';
import { href, router } from '../../stores/route.svelte';
import { isPlace } from '../../../shared/lib/publicurl';
import { toasts } from '../../../shared/stores/toasts.svelte';
import { tunnels, undoFor } from '../../stores/tunnels.svelte';
import type { MenuItem } from '../../../shared/ui/menu';

/** Before a tunnel's id in the location: its policy is open, or the code for a phone. */
export const policyPrefix = 'policy:';
export const qrPrefix = 'qr:';

/** Reports whether stopping, rather than starting, is what one can do. */
export function isRunning(tunnel: Tunnel): boolean {
  return tunnel.state === 'running' || tunnel.state === 'starting' || tunnel.state === 'waiting';
}

export async function toggle(tunnel: Tunnel): Promise<void> {
  await act(() => (isRunning(tunnel) ? tunnels.stop(tunnel.id) : tunnels.start(tunnel.id)));
}

/** The toast that offers to undo the last deletion. */
let offered = -1;

/** Deletes a tunnel, with a few seconds to think again, or until the next is deleted. */
export function remove(tunnel: Tunnel): void {
  toasts.drop(offered);
  tunnels.deleteSoon(tunnel.id, (error) => toasts.show({ kind: 'bad', text: explain(error) }));
  offered = toasts.show(
    {
      kind: 'ok',
      text: t('tunnel.deleted', { name: tunnel.name || tunnel.domain || tunnel.id }),
      action: { label: t('undo'), run: () => tunnels.undoDelete(tunnel.id) },
    },
    undoFor,
  );
}

async function give(command: string): Promise<void> {
  if (await copy(command)) toasts.show({ kind: 'ok', text: t('visit.copied', { command }) });
  else toasts.show({ kind: 'bad', text: t('copy.failed') });
}

/** Returns what else can be done with a tunnel. */
export function menuOf(tunnel: Tunnel): MenuItem[] {
  const items: MenuItem[] = [
    {
      label: t(tunnel.declared ? 'tunnel.show' : 'tunnel.edit'),
      icon: tunnel.declared ? 'info' : 'edit',
      run: () => router.go('tunnels', tunnel.id),
    },
  ];
  items.push({
    label: t('tunnel.policy'),
    icon: 'policies',
    run: () => router.go('tunnels', policyPrefix + tunnel.id),
  });
  const command = visitCommand(tunnel);
  if (command) items.push({ label: t('visit.copy'), icon: 'copy', run: () => void give(command) });
  if (isPlace(tunnel.public_url))
    items.push({
      label: t('qr.title'),
      icon: 'qr',
      run: () => router.go('tunnels', qrPrefix + tunnel.id),
    });
  if (tunnel.inspect)
    items.push({
      label: t('tunnel.requests'),
      icon: 'inspector',
      run: () => (location.hash = href('inspector', '', { tunnel: tunnel.id })),
    });
  if (!tunnel.declared)
    items.push({ label: t('delete'), icon: 'trash', bad: true, run: () => remove(tunnel) });
  return items;
}
