/** What shared components say, in English. */
export const en = {
  close: 'Close',
  cancel: 'Cancel',
  dismiss: 'Dismiss',
  copy: 'Copy',
  copied: 'Copied',
  'copy.failed': 'The browser did not allow copying. Select the text and copy it by hand.',
  theme: 'Theme',
  'theme.system': 'System',
  'theme.light': 'Light',
  'theme.dark': 'Dark',
  lang: 'Language',
  'lang.other': '中文',
  'qr.title': 'QR code',
  'qr.label': 'QR code of {url}',
  'qr.hint': 'Scan it with a phone to open the address there.',
} as const;
