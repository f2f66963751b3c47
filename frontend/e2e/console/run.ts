/** The console's page against the mock relay, in a real browser. */
import { launch } from '../browser';
import { runAll } from '../runner';
import { scenarios as certificates } from './certificates';
import { scenarios as editing } from './editing';
import { scenarios as keyboard } from './keyboard';
import { scenarios as hidden } from './private';
import { scenarios as reading } from './reading';
import { scenarios } from './scenarios';
import { scenarios as searching } from './searching';
import { scenarios as signin } from './signin';
import { scenarios as slow } from './slow';
import { scenarios as telling } from './telling';
import { scenarios as updated } from './updated';
import { tour } from './tour';
import { scenarios as webhooks } from './webhooks';

// The scenarios share the browser's one clipboard, so they go one by one.
await runAll(await launch(), [
  {
    ...scenarios,
    ...certificates,
    ...editing,
    ...keyboard,
    ...hidden,
    ...reading,
    ...searching,
    ...signin,
    ...slow,
    ...telling,
    ...updated,
    ...webhooks,
  },
  tour(),
]);
