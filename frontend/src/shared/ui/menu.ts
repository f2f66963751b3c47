import type { IconName } from './icons';

/** One line of a menu. */
export interface MenuItem {
  label: string;
  icon: IconName;
  bad?: boolean;
  run: () => void;
}
