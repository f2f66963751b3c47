/** Takes the pictures of every page of both apps against the mocks: `npm run look`. */
import { launch } from './browser';
import { tour as consoleTour } from './console/tour';
import { runAll } from './runner';
import { tour } from './tour';

await runAll(await launch(), [tour(), consoleTour()]);
