/** Serves the mock by itself, with visitors, to look at the page by hand. */
import { ConsoleMock } from './mock';

const mock = new ConsoleMock();
await mock.start(Number(process.env.PORT ?? 37_281));
console.log(mock.url);
setInterval(() => mock.visit(), 900);
