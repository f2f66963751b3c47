import { vitePreprocess } from '@sveltejs/vite-plugin-svelte';

export default {
  preprocess: vitePreprocess(),
  compilerOptions: {
    runes: true,
    // A hash of the name alone: the class names stay the same on every machine.
    cssHash: ({ hash, name, css }) => `s-${hash(name + css)}`,
  },
};
