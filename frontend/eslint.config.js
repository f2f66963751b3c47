import js from '@eslint/js';
import svelte from 'eslint-plugin-svelte';
import globals from 'globals';
import ts from 'typescript-eslint';

export default ts.config(
  { ignores: ['dist', 'node_modules', 'screenshots', 'src/*/api/schema.d.ts'] },
  js.configs.recommended,
  ...ts.configs.recommended,
  ...svelte.configs.recommended,
  { languageOptions: { globals: { ...globals.browser, ...globals.node } } },
  {
    files: ['**/*.svelte', '**/*.svelte.ts'],
    languageOptions: { parserOptions: { parser: ts.parser } },
  },
  {
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      'no-console': 'error',
      eqeqeq: 'error',
      // Hash routing: links are made by href(), not by a framework's resolver.
      'svelte/no-navigation-without-resolve': 'off',
      // svelte-check is the judge of these.
      'svelte/no-unused-svelte-ignore': 'off',
      // Stores keep plain collections and publish snapshots of them.
      'svelte/prefer-svelte-reactivity': 'off',
    },
  },
  {
    // A component over this is two components.
    files: ['src/**/*.svelte'],
    rules: { 'max-lines': ['error', { max: 170, skipBlankLines: true, skipComments: true }] },
  },
  { files: ['e2e/**', 'scripts/**'], rules: { 'no-console': 'off' } },
);
