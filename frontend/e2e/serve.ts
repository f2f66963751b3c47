/** Serves the mock by itself, with traffic, to look at the page by hand. */
import { Mock } from './mock';

const mock = new Mock();
await mock.start(Number(process.env.PORT ?? 37_272));
console.log(mock.url);
setInterval(() => {
  mock.addRequest();
  const { in: inward, out } = mock.status.bytes;
  mock.setStatus({
    bytes: {
      in: inward + Math.round(Math.random() * 90_000),
      out: out + Math.round(Math.random() * 900_000),
    },
  });
}, 700);
