/**
 * WebKitGTK, the engine nearest to Safari's that Linux has: MiniBrowser on a
 * screen of its own, driven by the few requests of WebDriver that tests here
 * make (https://www.w3.org/TR/webdriver2/). Playwright drives only a WebKit that
 * it built itself.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';

/** Keys that have no character of their own, as WebDriver names them. */
export const keys = {
  Tab: '\uE004',
  Enter: '\uE007',
  Escape: '\uE00C',
  End: '\uE010',
  Home: '\uE011',
  ArrowUp: '\uE013',
  ArrowDown: '\uE015',
} as const;

/** How WebDriver names an element that a script returned. */
const elementKey = 'element-6066-11e4-a52e-4f735466cecf';
type Found = Record<typeof elementKey, string>;
const patience = 40_000;

/**
 * A browser starts within two seconds, or, once in some hundred times beside other
 * tests, says nothing to its driver for good. Then another one is started.
 */
const start = 20_000;
const starts = 3;

// The toolbar of the browser keeps a window from being as narrow as a phone.
const narrow = 'window box * { min-width: 0; padding: 0; margin: 0; font-size: 1px; }';
const still = '[Settings]\ngtk-enable-animations=0\n';

export interface Look {
  dark?: boolean;
  /** More capabilities, as WebDriver names them. */
  capabilities?: Record<string, unknown>;
}

export class Webkit {
  #session = '';
  #running: ChildProcess[] = [];
  #home = mkdtempSync(join(tmpdir(), 'adit-webkit-'));

  /** Where files that are saved end up. */
  get downloads(): string {
    return join(this.#home, 'Downloads');
  }

  /** Starts the browser; without it, ends the program as a missing tool does. */
  static async launch(look: Look = {}): Promise<Webkit> {
    const binary = minibrowser();
    if (!binary || !installed('WebKitWebDriver') || !installed('Xvfb')) {
      console.error('there is no WebKit to drive: install webkit2gtk-driver and xvfb');
      process.exit(process.env.ADIT_REQUIRE === '1' ? 1 : 77);
    }
    for (let left = starts - 1; ; left--) {
      const kit = new Webkit();
      try {
        await kit.#start(binary, look);
        return kit;
      } catch (error) {
        await kit.close();
        const late = error instanceof DOMException && error.name === 'TimeoutError';
        if (!late || left === 0) throw error;
      }
    }
  }

  async #start(binary: string, { dark, capabilities }: Look): Promise<void> {
    const gtk = join(this.#home, 'gtk-3.0');
    mkdirSync(gtk);
    mkdirSync(this.downloads);
    writeFileSync(join(this.#home, 'user-dirs.dirs'), 'XDG_DOWNLOAD_DIR="$HOME/Downloads"\n');
    writeFileSync(join(gtk, 'gtk.css'), narrow);
    writeFileSync(join(gtk, 'settings.ini'), still);
    const screen = spawn(
      'Xvfb',
      ['-displayfd', '3', '-screen', '0', '1600x1200x24', '-nolisten', 'tcp'],
      { stdio: ['ignore', 'ignore', 'ignore', 'pipe'] },
    );
    this.#running.push(screen);
    const [display] = (await once(screen.stdio[3] as Readable, 'data')) as [Buffer];
    const port = await free();
    const driver = spawn('WebKitWebDriver', [`--port=${port}`], {
      stdio: 'ignore',
      env: {
        PATH: process.env.PATH,
        LC_ALL: 'C.UTF-8',
        DISPLAY: `:${String(display).trim()}`,
        HOME: this.#home,
        XDG_CONFIG_HOME: this.#home,
        XDG_RUNTIME_DIR: this.#home,
        // Neither a message bus nor what reads the screen aloud is asked for.
        DBUS_SESSION_BUS_ADDRESS: 'disabled:',
        NO_AT_BRIDGE: '1',
        GTK_THEME: dark ? 'Adwaita:dark' : 'Adwaita',
      },
    });
    this.#running.push(driver);
    this.#session = `http://127.0.0.1:${port}`;
    await soon('the driver of WebKit', () =>
      fetch(`${this.#session}/status`).then(
        (answer) => answer.ok,
        () => false,
      ),
    );
    this.#session += '/session';
    const options = { binary, args: ['--automation'] };
    const made = await this.#send<{ sessionId: string }>(
      'POST',
      '',
      { capabilities: { alwaysMatch: { 'webkitgtk:browserOptions': options, ...capabilities } } },
      start,
    );
    this.#session += `/${made.sessionId}`;
  }

  async #send<T = unknown>(
    method: string,
    path: string,
    body?: object,
    limit = patience,
  ): Promise<T> {
    const answer = await fetch(this.#session + path, {
      method,
      ...(method === 'POST' && { body: JSON.stringify(body ?? {}) }),
      signal: AbortSignal.timeout(limit),
    });
    const { value } = (await answer.json()) as { value: T & { error?: string; message?: string } };
    if (!answer.ok) throw new Error(`webkit ${method} ${path}: ${value.error}: ${value.message}`);
    return value;
  }

  async close(): Promise<void> {
    if (this.#session) await this.#send('DELETE', '').catch(() => undefined);
    for (const one of this.#running.reverse()) {
      if (one.exitCode !== null || one.signalCode !== null) continue;
      one.kill();
      await once(one, 'exit');
    }
    rmSync(this.#home, { recursive: true, force: true, maxRetries: 5 });
  }

  goto = (url: string) => this.#send('POST', '/url', { url });

  reload = () => this.#send('POST', '/refresh');

  /** Makes the page's part of the window so large; the window's own bars, one of downloads too, are around it. */
  async resize(width: number, height: number): Promise<void> {
    await soon(`a page of ${width}x${height}`, async () => {
      const inner = await this.run<[number, number]>('return [innerWidth, innerHeight]');
      if (inner[0] === width && inner[1] === height) return true;
      const outer = await this.#send<{ height: number }>('GET', '/window/rect');
      const bar = outer.height - inner[1];
      // While the window is on its way to a size, the two do not fit each other.
      const usual = bar >= 0 && bar < 300 ? bar : 0;
      await this.#send('POST', '/window/rect', { width, height: height + usual });
      return false;
    });
  }

  /** Runs the text of a function in the page. */
  run<T = unknown>(script: string, ...args: unknown[]): Promise<T> {
    return this.#send<T>('POST', '/execute/sync', { script, args });
  }

  /** Waits until a script returns something true, on this page or one that it leads to. */
  until(script: string, ...args: unknown[]): Promise<void> {
    return soon(`${script} ${args.join(' ')}`, () =>
      this.run(script, ...args).then(Boolean, (error: unknown) => {
        if (!/before the unload event/.test(String(error))) throw error;
        return false; // the page left meanwhile, and the answer with it
      }),
    );
  }

  /** Waits for what can be seen, by its selector and a part of its name or text. */
  async find(selector: string, name = ''): Promise<Found> {
    let found: Found | null = null;
    await soon(
      `${selector} ${name}`,
      async () => !!(found = await this.run<Found | null>(look, selector, name)),
    );
    return found as unknown as Found;
  }

  /** Waits until nothing of that kind can be seen. */
  gone(selector: string, name = ''): Promise<void> {
    return soon(
      `no ${selector} ${name}`,
      async () => !(await this.run<Found | null>(look, selector, name)),
    );
  }

  /** Clicks as a person does, where it can be hit. */
  async click(selector: string, name = ''): Promise<void> {
    const { [elementKey]: id } = await this.find(selector, name);
    await this.#send('POST', `/element/${id}/click`);
  }

  /** Types into a field in place of what it has; for a file, its path. */
  async fill(selector: string, text: string): Promise<void> {
    const { [elementKey]: id } = await this.find(selector);
    await this.#send('POST', `/element/${id}/clear`);
    await this.#send('POST', `/element/${id}/value`, { text });
  }

  /** Hands a file to the reader's choice of files, which no eye can see. */
  async choose(selector: string, path: string): Promise<void> {
    const { [elementKey]: id } = await this.run<Found>(
      'return document.querySelector(arguments[0])',
      selector,
    );
    await this.#send('POST', `/element/${id}/value`, { text: path });
  }

  /** Presses keys, one after the other, wherever the focus is. */
  press(...pressed: (keyof typeof keys | (string & {}))[]): Promise<unknown> {
    const actions = pressed
      .map((key) => (keys as Record<string, string>)[key] ?? key)
      .flatMap((value) => [
        { type: 'keyDown', value },
        { type: 'keyUp', value },
      ]);
    return this.#send('POST', '/actions', { actions: [{ type: 'key', id: 'keys', actions }] });
  }

  /** Pastes where the focus is. */
  paste(): Promise<unknown> {
    const actions = [
      { type: 'keyDown', value: '\uE009' },
      { type: 'keyDown', value: 'v' },
      { type: 'keyUp', value: 'v' },
      { type: 'keyUp', value: '\uE009' },
    ];
    return this.#send('POST', '/actions', { actions: [{ type: 'key', id: 'keys', actions }] });
  }

  /** A picture of the window, as it is once all has been drawn. */
  async screenshot(path: string): Promise<void> {
    await this.run(drawn);
    writeFileSync(path, Buffer.from(await this.#send<string>('GET', '/screenshot'), 'base64'));
  }
}

const look = `
  const [selector, name] = arguments;
  return [...document.querySelectorAll(selector)].find((e) =>
    e.checkVisibility({ visibilityProperty: true }) &&
    (e.ariaLabel ?? e.textContent).includes(name)) ?? null;`;

// What moves has come to its end, and then there were two frames.
const drawn = `
  const frame = () => new Promise(requestAnimationFrame);
  return Promise.all(document.getAnimations()
    .filter((a) => a.effect.getComputedTiming().endTime < Infinity).map((a) => a.finished))
    .then(frame).then(frame).then(() => null);`;

async function soon(what: string, holds: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + patience;
  for (; !(await holds()); await new Promise((go) => setTimeout(go, 25)))
    if (Date.now() > end) throw new Error(`waited in vain in WebKit: ${what}`);
}

/** A port that is free now. */
async function free(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

const installed = (program: string) =>
  (process.env.PATH ?? '').split(':').some((folder) => existsSync(join(folder, program)));

function minibrowser(): string | undefined {
  const arch = process.arch === 'arm64' ? 'aarch64' : 'x86_64';
  return ['4.1', '4.0']
    .map((version) => `/usr/lib/${arch}-linux-gnu/webkit2gtk-${version}/MiniBrowser`)
    .find((path) => existsSync(path));
}
