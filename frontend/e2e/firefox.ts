/**
 * Both applications against the mocks in Firefox: `npm run e2e:firefox`. Here is
 * what its engine has a part in; `ADIT_BROWSER=firefox npx tsx e2e/run.ts` tries
 * all, of which some ask for what Playwright cannot do in Firefox.
 */
import { launch } from './browser';
import { scenarios as console_ } from './console/scenarios';
import { tour as consoleTour } from './console/tour';
import { scenarios as keyboard } from './keyboard';
import { pictures } from './looks';
import { pick, runAll } from './runner';
import { scenarios } from './scenarios';
import { scenarios as telling } from './telling';
import { tour } from './tour';

const shots = `${pictures}firefox-`;
// The scenarios share the clipboard and the focus, so they go one by one.
const doing = {
  ...pick(
    scenarios,
    'first run, with every way to go wrong',
    'create a tunnel, checked as one types',
    'delete a tunnel, and think again',
    'QR code, copy, and back to the keyboard',
    'inspect, replay, edit and replay',
    'the daemon is killed, and comes back',
    'the keyboard alone',
  ),
  ...pick(keyboard, 'the keyboard keeps its place among tunnels'),
  ...pick(telling, 'an error that is cut short is told whole to the keyboard'),
  ...pick(
    console_,
    'sign in with a second factor, and out again',
    'a policy, its faults and its explanation',
    'visits show as they happen, and older ones on demand',
  ),
};
const looking = {
  ...pick(tour(shots), 'pages wide-light-en', 'pages phone-dark-zh-CN'),
  ...pick(consoleTour(shots), 'console wide-light-en', 'console phone-dark-zh-CN'),
};

await runAll(await launch(), [doing, looking], 'firefox: ');
