import { mount } from 'svelte';
import App from './App.svelte';
import { feed } from './stores/feed.svelte';
import { prefs } from '../shared/stores/prefs.svelte';
import { router } from './stores/route.svelte';
import { restoreBearer } from './stores/session';
import { status } from './stores/status.svelte';
import { tunnels } from './stores/tunnels.svelte';
import { clock, viewport } from '../shared/stores/viewport.svelte';
import '../shared/styles/tokens.css';
import '../shared/styles/base.css';

prefs.load();
viewport.start();

const target = document.getElementById('app');
if (!target) throw new Error('the page has no #app');
mount(App, { target });

const page = new AbortController();
addEventListener('pagehide', () => tunnels.flush());

restoreBearer();
router.start();
clock.start((now) => {
  if (feed.following) status.sample(now);
});
void feed.run(page.signal);
