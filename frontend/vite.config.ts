import { fileURLToPath } from 'node:url';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

// The build must give the same bytes twice, hold nothing inline (the page's
// content security policy is default-src 'self') and fetch nothing from afar.
// The mode is the app: `vite build --mode console`.
const apps: Record<string, string> = {
  agent: 'http://127.0.0.1:37271',
  console: 'http://127.0.0.1:37280',
};

export default defineConfig(({ mode }) => ({
  root: mode in apps ? `src/${mode}` : undefined,
  publicDir: fileURLToPath(new URL('public', import.meta.url)),
  base: './',
  plugins: [svelte({ configFile: fileURLToPath(new URL('svelte.config.js', import.meta.url)) })],
  build: {
    outDir: fileURLToPath(new URL(`dist/${mode}`, import.meta.url)),
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2022',
    cssCodeSplit: false,
    reportCompressedSize: false,
    sourcemap: false,
  },
  server: {
    // `npm run dev` beside a daemon or relay on its usual address.
    proxy: { '/api': apps[mode] ?? '', '/healthz': apps[mode] ?? '' },
  },
  test: {
    include: ['src/**/*.test.ts'],
    environment: 'node',
    css: true,
  },
}));
