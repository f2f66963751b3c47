import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

// The build must give the same bytes twice, hold nothing inline (the page's
// content security policy is default-src 'self') and fetch nothing from afar.
export default defineConfig({
  base: './',
  plugins: [svelte()],
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2022',
    cssCodeSplit: false,
    reportCompressedSize: false,
    sourcemap: false,
  },
  server: {
    // `npm run dev` beside a daemon on its usual address.
    proxy: { '/api': 'http://127.0.0.1:37271', '/healthz': 'http://127.0.0.1:37271' },
  },
  test: {
    include: ['src/**/*.test.ts'],
    environment: 'node',
  },
});
