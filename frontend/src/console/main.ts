import { mount } from 'svelte';
import '../shared/styles/tokens.css';
import '../shared/styles/base.css';
import { prefs } from '../shared/stores/prefs.svelte';
import { clock, viewport } from '../shared/stores/viewport.svelte';
import App from './App.svelte';
import { router } from './stores/route.svelte';
import { session } from './stores/session.svelte';

prefs.load();
viewport.start();
router.start();
clock.start(() => undefined);
void session.load();

const target = document.getElementById('app');
if (!target) throw new Error('the page has no #app');
mount(App, { target });
