import type { en } from './en';

/** What shared components say, in simplified Chinese. */
export const zh: Record<keyof typeof en, string> = {
  close: '关闭',
  cancel: '取消',
  dismiss: '知道了',
  copy: '复制',
  copied: '已复制',
  'copy.failed': '浏览器不允许复制，请手动选中后复制。',
  theme: '主题',
  'theme.system': '跟随系统',
  'theme.light': '浅色',
  'theme.dark': '深色',
  lang: '语言',
  'lang.other': 'EN',
  'qr.title': '二维码',
  'qr.label': '{url} 的二维码',
  'qr.hint': '用手机扫描即可打开此地址。',
};
