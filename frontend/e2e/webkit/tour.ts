/** Every page of both applications in WebKit, as the tours of Chromium see them. */
import assert from 'node:assert/strict';
import { ConsoleMock } from '../console/mock';
import { stops as consoleStops } from '../console/tour';
import { mistake } from '../fixtures';
import { Mock, unconfigured } from '../mock';
import { watched } from '../static';
import { stops } from '../tour';
import type { Webkit } from './driver';

/** How the page is looked at. The reader's choice says it: WebDriver has no words for it. */
export interface View {
  name: string;
  width: number;
  height: number;
  theme: 'light' | 'dark';
  lang: 'en' | 'zh-CN';
}
export const wide: View = { name: 'wide', width: 1280, height: 800, theme: 'light', lang: 'en' };
export const phone: View = { name: 'phone', width: 390, height: 844, theme: 'dark', lang: 'zh-CN' };
export const views = [wide, phone];

/** Opens the page as a reader with these choices has it. */
export async function open(webkit: Webkit, url: string, view: View, hash = ''): Promise<void> {
  await webkit.goto(`${url}/favicon.svg`); // of the same origin, and without the application
  await webkit.run(
    `localStorage.setItem('adit.theme', arguments[0]);
    localStorage.setItem('adit.lang', arguments[1]);`,
    view.theme,
    view.lang,
  );
  await webkit.resize(view.width, view.height);
  await webkit.goto(url + watched + hash);
}

/** The colour of text in each theme; tokens.css has it. */
const ink = { light: 'rgb(20, 24, 31)', dark: 'rgb(232, 235, 240)' };

/** Goes to another page of the application, or waits for what it has. */
async function arrive(webkit: Webkit, view: View, stop: string, ready: string): Promise<void> {
  const [, text] = /^text=(.*)$/.exec(ready) ?? [];
  await (text ? webkit.find('main a, main b', text) : webkit.find(ready));
  const { lang, theme, wider, problems, unseen } = await webkit.run<{
    lang: string;
    theme: string;
    wider: number;
    problems: string[];
    unseen: string[];
  }>(
    `
    const root = document.documentElement;
    const unseen = [...document.querySelectorAll('#app *')]
      .filter((e) => getComputedStyle(e).color === arguments[0] && e.checkVisibility())
      .map((e) => e.outerHTML.slice(0, 80));
    return {
      lang: root.lang, theme: root.dataset.theme, wider: root.scrollWidth - innerWidth, problems,
      unseen,
    };`,
    view.theme === 'dark' ? ink.light : ink.dark,
  );
  assert.deepEqual(unseen, [], `${stop}: text in the colour of the other theme`);
  assert.deepEqual({ lang, theme }, { lang: view.lang, theme: view.theme }, stop);
  assert.ok(wider <= 0, `${stop} is ${wider} pixels wider than the window`);
  assert.deepEqual(problems, [], stop);
}

/** Visits the pages of the agent's Web UI. */
export async function agentTour(webkit: Webkit, view: View, shots: string): Promise<void> {
  const mock = new Mock();
  await mock.start();
  const configured = mock.status;
  try {
    for (const [stop, hash, ready] of stops) {
      mock.config.error = stop === 'settings' || stop === 'mistake' ? mistake : undefined;
      mock.status = stop === 'first' ? { ...configured, ...unconfigured } : configured;
      // The first page is loaded, the others are reached within it.
      if (stop === 'first') await open(webkit, mock.url, view);
      else if (stop === 'overview') await webkit.goto('about:blank');
      if (stop !== 'first') await webkit.goto(mock.url + watched + hash);
      if (stop === 'diagnostics') await webkit.click(ready);
      await arrive(webkit, view, stop, stop === 'diagnostics' ? 'li .advice' : ready);
      await webkit.screenshot(`${shots}webkit-${view.name}-${stop}.png`);
    }
  } finally {
    await mock.stop();
  }
}

/** Visits the pages of the relay's console. */
export async function consoleTour(webkit: Webkit, view: View, shots: string): Promise<void> {
  const mock = new ConsoleMock();
  await mock.start();
  const inside = mock.session;
  try {
    for (const [stop, hash, ready] of consoleStops) {
      const out = stop === 'setup' || stop === 'signin';
      mock.session = { ...inside, signed_in: !out, setup_needed: stop === 'setup' };
      if (stop === 'setup') await open(webkit, mock.url, view);
      else if (stop === 'signin' || stop === 'overview') await webkit.goto('about:blank');
      if (stop !== 'setup') await webkit.goto(mock.url + watched + hash);
      await arrive(webkit, view, stop, ready);
      const cut = await webkit.run(`
        return [...document.querySelectorAll('table')]
          .filter((t) => t.getBoundingClientRect().right > innerWidth).map((t) => t.ariaLabel);`);
      assert.deepEqual(cut, [], `tables of ${stop} are cut off`);
      await webkit.screenshot(`${shots}webkit-console-${view.name}-${stop}.png`);
    }
  } finally {
    await mock.stop();
  }
}
