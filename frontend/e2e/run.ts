/**
 * The page against the mock, in a real browser: `npm run e2e:mock`. Each
 * scenario has a mock of its own; nothing waits for luck, all for conditions.
 */
import { launch } from './browser';
import { scenarios as headers } from './headers';
import { scenarios as keyboard } from './keyboard';
import { scenarios as leaving } from './leaving';
import { scenarios as paths } from './paths';
import { scenarios as guarded } from './guarded';
import { scenarios as ports } from './ports';
import { scenarios as hidden } from './private';
import { scenarios as reading } from './reading';
import { dealt, runAll } from './runner';
import { scenarios } from './scenarios';
import { scenarios as signin } from './signin';
import { scenarios as slow } from './slow';
import { scenarios as telling } from './telling';
import { scenarios as updated } from './updated';
import { tour } from './tour';
import { scenarios as certificates } from './certificates';
import { scenarios as webhooks } from './webhooks';

// The scenarios share the browser's one clipboard, so they go one by one; the
// tour beside them is cut in two.
await runAll(await launch(), [
  {
    ...scenarios,
    ...reading,
    ...keyboard,
    ...leaving,
    ...signin,
    ...slow,
    ...telling,
    ...updated,
    ...headers,
    ...paths,
    ...hidden,
    ...guarded,
    ...ports,
    ...certificates,
    ...webhooks,
  },
  ...dealt(tour(), 2),
]);
